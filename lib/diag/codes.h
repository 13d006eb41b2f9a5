// The table of diagnostic codes: one row per code, the source of messages' severities and of the documentation.
// SP1xxx shape of the file, SP2xxx model, SP3xxx mesh, SP4xxx partitioning, SP5xxx backend, SP6xxx plan, SP7xxx run.
#pragma once

#include <span>
#include <string_view>

#include "diag/diagnostic.h"

namespace shardplan::diag {

struct CodeInfo {
    std::string_view code;
    Severity severity;
    std::string_view title;        ///< a few words
    std::string_view explanation;  ///< why it is refused or reported
};

/// Every code, sorted.
std::span<const CodeInfo> all_codes();

/// nullptr when the code does not exist.
const CodeInfo* find_code(std::string_view code);

}  // namespace shardplan::diag
