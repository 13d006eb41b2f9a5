// Reads a whole file, or standard input for "-", up to a size limit.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "diag/diagnostic.h"

namespace shardplan::config {

/// Errors: SP1001 (missing, a directory, not readable, read error), SP1009 (larger than `limit` bytes), both at
/// `pointer`: the place in the job that names the file, "" when the command line does.
std::optional<std::string> read_file(const std::string& path, std::size_t limit, diag::Diagnostics& diagnostics,
                                     const std::string& pointer = "");

}  // namespace shardplan::config
