#include "config/text_checks.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardplan::config {
namespace {

using namespace std::string_view_literals;

std::string_view other_encoding(std::string_view text) {
    if (text.starts_with("\xff\xfe\0\0"sv) || text.starts_with("{\0\0\0"sv)) {
        return "UTF-32LE";
    }
    if (text.starts_with("\0\0\xfe\xff"sv) || text.starts_with("\0\0\0{"sv)) {
        return "UTF-32BE";
    }
    if (text.starts_with("\xff\xfe"sv) || (text.size() > 1 && text[0] != '\0' && text[1] == '\0')) {
        return "UTF-16LE";
    }
    if (text.starts_with("\xfe\xff"sv) || (text.size() > 1 && text[0] == '\0' && text[1] != '\0')) {
        return "UTF-16BE";
    }
    return "";
}

/// Length of the well-formed UTF-8 sequence at `i` (Unicode 15, table 3-7), or 0.
std::size_t sequence_length(std::string_view text, std::size_t i) {
    const auto byte = [&](std::size_t k) -> unsigned {
        return k < text.size() ? static_cast<unsigned char>(text[k]) : 0U;
    };
    const unsigned lead = byte(i);
    if (lead < 0x80U) {
        return 1;
    }
    const std::size_t length = lead >= 0xc2U && lead <= 0xdfU   ? 2
                               : lead >= 0xe0U && lead <= 0xefU ? 3
                               : lead >= 0xf0U && lead <= 0xf4U ? 4
                                                                : 0;
    for (std::size_t k = 1; k < length; ++k) {
        if ((byte(i + k) & 0xc0U) != 0x80U) {
            return 0;
        }
    }
    const unsigned second = byte(i + 1);
    const bool overlong = (lead == 0xe0U && second < 0xa0U) || (lead == 0xf0U && second < 0x90U);
    const bool surrogate = lead == 0xedU && second > 0x9fU;
    const bool beyond = lead == 0xf4U && second > 0x8fU;
    return overlong || surrogate || beyond ? 0 : length;
}

std::optional<TextProblem> check_utf8(std::string_view text) {
    std::size_t i = 0;
    while (i < text.size()) {
        const std::size_t length = sequence_length(text, i);
        if (length == 0) {
            const auto byte = static_cast<unsigned>(static_cast<unsigned char>(text[i]));
            return TextProblem{{i, i + 1},
                               fmt::format("byte 0x{:02x} at offset {} is not valid UTF-8", byte, i),
                               "save the file as UTF-8"};
        }
        i += length;
    }
    return std::nullopt;
}

}  // namespace

std::string_view without_bom(std::string_view text) {
    return text.starts_with("\xef\xbb\xbf"sv) ? text.substr(3) : text;
}

std::optional<TextProblem> check_text(std::string_view text) {
    if (const std::string_view encoding = other_encoding(text); !encoding.empty()) {
        return TextProblem{{0, 0},
                           fmt::format("the text is {}, not UTF-8", encoding),
                           fmt::format("convert it: iconv -f {} -t UTF-8", encoding)};
    }
    if (text.starts_with("\xef\xbb\xbf"sv)) {  // the parser would skip it, and places would be off by it
        return TextProblem{{0, 3}, "the text begins with two byte order marks", "remove them"};
    }
    const std::size_t start = text.find_first_not_of(" \t\r\n");
    if (start == std::string_view::npos) {
        return TextProblem{{0, 0},
                           text.empty() ? "the file is empty" : "the file holds only white space",
                           "a JSON object is expected"};
    }
    const std::string_view body = text.substr(start);
    const TextRange first_line{start, start + std::min(body.find_first_of("\r\n"), body.size())};
    if (body.starts_with("version https://git-lfs")) {
        return TextProblem{first_line, "this is a Git LFS pointer, not the file itself",
                           "fetch the content: git lfs pull"};
    }
    if (body.starts_with("<<<<<<<") || body.starts_with("=======") || body.starts_with(">>>>>>>")) {
        return TextProblem{first_line, "this is the mark of a conflict that a merge left behind",
                           "resolve the conflict"};
    }
    if (body.front() == '<') {
        return TextProblem{first_line, "this is not JSON; it looks like a web page or XML",
                           "the download may have returned an error page"};
    }
    return check_utf8(text);
}

}  // namespace shardplan::config
