// Says in words what is wrong at the place where a JSON parser gave up.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "config/text_checks.h"
#include "config/token_cursor.h"

namespace shardplan::config {

struct FailedParse {
    std::string_view text;
    TokenCursor::Place place;
    std::size_t offending_byte = 0;        ///< last byte the parser read; text.size() at the end
    std::optional<std::size_t> container;  ///< where the innermost open object or array began
};

/// @pre the text is valid UTF-8 and not a JSON document
TextProblem explain_syntax(const FailedParse& parse);

}  // namespace shardplan::config
