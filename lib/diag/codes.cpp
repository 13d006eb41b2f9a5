#include "diag/codes.h"

#include <algorithm>

#include "diag/codes_table.h"

namespace shardplan::diag {

std::span<const CodeInfo> all_codes() {
    return code_table;
}

const CodeInfo* find_code(std::string_view code) {
    const auto it =
        std::find_if(code_table.begin(), code_table.end(), [&](const CodeInfo& row) { return row.code == code; });
    return it == code_table.end() ? nullptr : &*it;
}

}  // namespace shardplan::diag
