// Numbers as people read them: decimal units (1 GB = 10^9 bytes), thousands separators, no locale.
#pragma once

#include <cstdint>
#include <string>

namespace shardplan::report {

/// "1,234,567"
std::string count_text(std::int64_t count);

/// "512 B", "16.06 GB"
std::string bytes_text(std::int64_t bytes);

/// "16.06 GB (16,060,522,496 B)"; "512 B" below 1 kB.
std::string exact_bytes_text(std::int64_t bytes);

/// "1.23 TFLOP"
std::string flops_text(double flops);

/// "1.23 ms"
std::string seconds_text(double seconds);

/// 0.0123 -> "1.23 %"
std::string percent_text(double fraction);

/// "1.25e-03"
std::string error_text(double value);

}  // namespace shardplan::report
