#include "partition/layer_patterns.h"

#include <cctype>

namespace shardplan::partition {
namespace {

bool is_digit(char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool is_grouping(char c) {
    return c == '(' || c == ')' || c == '?' || c == ':' || c == '|';
}

char at(std::string_view text, std::size_t i) {
    return i < text.size() ? text[i] : '\0';
}

/// Walks over the atoms of a pattern; each step looks at one and moves past it.
class Scan {
public:
    explicit Scan(std::string_view text) : text_(text) {}

    bool finds_layer() {
        while (i_ < text_.size()) {
            if (step()) {
                return true;
            }
        }
        return false;
    }

private:
    bool repeats_freely() const { return at(text_, i_) == '*' || at(text_, i_) == '+'; }

    bool step() {
        const char c = text_[i_];
        if (c == '\\') {
            return escape();
        }
        if (c == '[') {
            return character_class();
        }
        if (c == '{') {
            return true;
        }
        if (is_word(c)) {
            return word();
        }
        ++i_;
        if (c == '.' && !repeats_freely() && (separator_before_ || next_is_separator())) {
            return true;
        }
        separator_before_ = c == '/' || c == '.' || (separator_before_ && is_grouping(c));
        return false;
    }

    bool next_is_separator() const {
        std::size_t i = i_;
        while (is_grouping(at(text_, i))) {
            ++i;
        }
        const char c = at(text_, i);
        return c == '/' || c == '.' || (c == '\\' && at(text_, i + 1) == '.');
    }

    bool escape() {
        const char c = at(text_, i_ + 1);
        i_ += 2;
        separator_before_ = c == '.' || c == '/';
        if (c == 'd' || is_digit(c) || c == 'x' || c == 'u') {
            return true;
        }
        return (c == 'w' || c == 'D' || c == 'W' || c == 'S') && !repeats_freely();
    }

    bool character_class() {
        const std::size_t end = text_.find(']', i_ + 2);
        const std::string_view inside = text_.substr(i_ + 1, end == text_.npos ? text_.npos : end - i_ - 1);
        i_ = end == text_.npos ? text_.size() : end + 1;
        separator_before_ = false;
        for (std::size_t k = 0; k < inside.size(); ++k) {
            if (is_digit(inside[k]) || inside[k] == ':' || (inside[k] == '\\' && at(inside, k + 1) != '.')) {
                return true;
            }
        }
        return at(inside, 0) == '^' && !repeats_freely();
    }

    /// A run of letters, digits and underscores is a number when it has digits only.
    bool word() {
        bool digits_only = true;
        for (; i_ < text_.size() && is_word(text_[i_]); ++i_) {
            digits_only = digits_only && is_digit(text_[i_]);
        }
        separator_before_ = false;
        return digits_only;
    }

    std::string_view text_;
    std::size_t i_ = 0;
    bool separator_before_ = false;
};

}  // namespace

bool may_tell_layers_apart(std::string_view pattern) {
    return Scan(pattern).finds_layer();
}

}  // namespace shardplan::partition
