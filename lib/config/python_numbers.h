// NaN, Infinity and -Infinity: no JSON, but what Python's json module writes into configs. They are read where a model
// is described, so that a field that nobody needs does not make the file unreadable; a field that is needed refuses
// them by its range.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "config/document.h"

namespace shardplan::config {

/// The number that `text` begins with when it is one of the three words, which must end there.
struct PythonNumber {
    double value = 0.0;
    std::size_t length = 0;
};
std::optional<PythonNumber> python_number_at(std::string_view text);

/// The text with every such word outside of strings replaced by a zero and blanks: all offsets stay.
std::string with_zeros_for_python_numbers(std::string_view text);

/// SP1010 for the numbers at or below the pointer `model`, SP1002 for all others.
void report_python_numbers(const Document& document, std::string_view model, diag::Diagnostics& diagnostics);

}  // namespace shardplan::config
