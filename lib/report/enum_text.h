// The spelling of enumerations in reports: as job files write them.
#pragma once

#include <string_view>

#include "plan/plan.h"

namespace shardplan::report {

std::string_view text_of(plan::Indivisible policy);
std::string_view text_of(plan::TokenDispatcher dispatcher);
std::string_view text_of(plan::KvHeads policy);
std::string_view text_of(plan::StoredKind kind);
std::string_view text_of(plan::ValueKind kind);
std::string_view text_of(partition::Compat compat);
std::string_view text_of(partition::RuleSource source);
std::string_view text_of(partition::Semantic semantic);
std::string_view text_of(backend::ProviderChoice choice);
std::string_view text_of(model::NormKind kind);
std::string_view text_of(model::BlockLayout layout);
std::string_view text_of(model::QkNorm norm);
std::string_view text_of(model::QkvStorage storage);

}  // namespace shardplan::report
