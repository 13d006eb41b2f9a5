// The table of diagnostic codes: one row per code, the source of messages' severities and of the documentation.
// SP1xxx shape of the file, SP2xxx model, SP3xxx mesh, SP4xxx partitioning, SP5xxx backend, SP6xxx plan, SP7xxx run.
// A code never changes its meaning; retired ones are not used again.
#pragma once

#include <span>
#include <string_view>

#include "diag/diagnostic.h"

namespace shardplan::diag {

struct CodeInfo {
    std::string_view code;
    Severity severity;
    std::string_view title;        ///< a few words
    std::string_view explanation;  ///< why it is refused or reported: whole sentences
    std::string_view hint;         ///< what to do about it, in general; messages add the values that would work
    std::string_view source;       ///< where the rule comes from; empty = our own format
};

/// Every code, sorted.
std::span<const CodeInfo> all_codes();

/// nullptr when the code does not exist.
const CodeInfo* find_code(std::string_view code);

}  // namespace shardplan::diag
