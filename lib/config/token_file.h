// Reads token ids from a JSON file: [batch][sequence].
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "diag/diagnostic.h"

namespace shardplan::config {

/// What the file must hold.
struct TokenShape {
    std::int64_t batch = 1;
    std::int64_t length = 1;  ///< tokens of each sequence
    std::int64_t vocab = 1;   ///< ids are 0 ... vocab - 1
};

/// The ids row by row, batch x length of them. Errors: SP1001, SP1002, SP1009, and SP7002 with the place of the row or
/// id that does not fit.
std::optional<std::vector<std::int32_t>> read_token_file(const std::string& path, const TokenShape& shape,
                                                         diag::Diagnostics& diagnostics);

}  // namespace shardplan::config
