#include "partition/required_text.h"

#include <cctype>

namespace shardplan::partition {
namespace {

char at(std::string_view text, std::size_t i) {
    return i < text.size() ? text[i] : '\0';
}

/// Behind the class that begins at `i`.
std::size_t class_end(std::string_view text, std::size_t i) {
    ++i;
    i += at(text, i) == '^' ? 1 : 0;
    while (i < text.size() && text[i] != ']') {
        const char kind = at(text, i + 1);
        if (text[i] == '[' && (kind == ':' || kind == '.' || kind == '=')) {  // [:alpha:] within the class
            const std::size_t end = text.find(std::string{kind, ']'}, i + 2);
            i = end == std::string_view::npos ? text.size() : end + 2;
        } else {
            i += text[i] == '\\' ? 2 : 1;
        }
    }
    return i + 1;
}

/// Behind the group that begins at `i`.
std::size_t group_end(std::string_view text, std::size_t i) {
    int depth = 0;
    while (i < text.size()) {
        const char c = text[i];
        if (c == '[') {
            i = class_end(text, i);
            continue;
        }
        depth += c == '(' ? 1 : c == ')' ? -1 : 0;
        i += c == '\\' ? 2 : 1;
        if (depth == 0) {
            break;
        }
    }
    return i;
}

class Runs {
public:
    explicit Runs(std::string_view text) : text_(text) {}

    std::string longest() {
        while (i_ < text_.size()) {
            if (text_[i_] == '|') {
                return "";
            }
            step();
        }
        finish();
        return best_;
    }

private:
    void step() {
        const char c = text_[i_];
        if (c == '\\') {
            escape(at(text_, i_ + 1));
        } else if (c == '(') {
            finish();
            i_ = group_end(text_, i_);
        } else if (c == '[') {
            finish();
            i_ = class_end(text_, i_);
        } else if (c == '*' || c == '?' || c == '{') {
            drop_last();
            i_ = c == '{' ? text_.find('}', i_) : i_;
            i_ = i_ == std::string_view::npos ? text_.size() : i_ + 1;
        } else if (c == '.' || c == '^' || c == '$' || c == '+' || c == ')' || c == ']' || c == '}') {
            finish();
            ++i_;
        } else {
            run_ += c;
            ++i_;
        }
    }

    void escape(char c) {
        const std::size_t operand = c == 'x' ? 2 : c == 'u' ? 4 : c == 'c' ? 1 : 0;
        i_ += 2 + operand;
        if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
            finish();
        } else {
            run_ += c;
        }
    }

    /// The last character may be absent.
    void drop_last() {
        if (!run_.empty()) {
            run_.pop_back();
        }
        finish();
    }

    void finish() {
        if (run_.size() > best_.size()) {
            best_ = run_;
        }
        run_.clear();
    }

    std::string_view text_;
    std::size_t i_ = 0;
    std::string run_;
    std::string best_;
};

}  // namespace

std::string required_text(std::string_view pattern) {
    return Runs(pattern).longest();
}

}  // namespace shardplan::partition
