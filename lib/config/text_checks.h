// Checks of a text before it is parsed as JSON: encoding, and files that are something else altogether.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "config/document.h"

namespace shardplan::config {

struct TextProblem {
    TextRange range;
    std::string message;
    std::string hint;
};

/// `text` without a UTF-8 byte order mark.
std::string_view without_bom(std::string_view text);

/// Empty text, UTF-16 / UTF-32, Git LFS pointers, web pages, bytes that are not UTF-8. @pre no byte order mark of UTF-8
std::optional<TextProblem> check_text(std::string_view text);

}  // namespace shardplan::config
