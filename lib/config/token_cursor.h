// Follows the tokens of a JSON text in step with the events of a parser, which reports none of their places.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "config/document.h"

namespace shardplan::config {

class TokenCursor {
public:
    enum class Last { none, open, key, value };

    /// Where the parser stands: what it saw last, the separator after that (if it is there), the next token.
    struct Place {
        Last last = Last::none;
        std::optional<std::size_t> separator;
        std::size_t next = 0;
        std::size_t last_end = 0;  ///< end of the last token
    };

    explicit TokenCursor(std::string_view text) : text_(text) {}

    /// The token of the event that the parser reports now; `kind` is what it is to the tokens after it.
    /// @pre the parser accepted it
    TextRange take(Last kind);

    Place place() const;

private:
    std::string_view text_;
    std::size_t end_ = 0;
    Last last_ = Last::none;
};

/// Length of the longest JSON number at the beginning of `text`, 0 when there is none (RFC 8259 section 6).
std::size_t number_length(std::string_view text);

}  // namespace shardplan::config
