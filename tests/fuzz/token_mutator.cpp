// Half of the mutations replace one token of the JSON text by another value, or by a token from elsewhere in it: the
// result mostly is JSON again and reaches the planner, where flipped bytes mostly end at the parser.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

constexpr std::array<std::string_view, 36> values = {"0",
                                                     "1",
                                                     "-1",
                                                     "2",
                                                     "3",
                                                     "4",
                                                     "7",
                                                     "8",
                                                     "16",
                                                     "64",
                                                     "100",
                                                     "128",
                                                     "1024",
                                                     "65536",
                                                     "2147483648",
                                                     "1099511627776",
                                                     "4611686018427387904",
                                                     "9223372036854775807",
                                                     "1e18",
                                                     "0.5",
                                                     "-0.0",
                                                     "true",
                                                     "false",
                                                     "null",
                                                     "\"\"",
                                                     "\"tp\"",
                                                     "[]",
                                                     "{}",
                                                     "[null]",
                                                     "[\"tp\", \"dp\"]",
                                                     "\"drop\"",
                                                     "\"split\"",
                                                     "\"decode\"",
                                                     "\"current\"",
                                                     "\"inference\"",
                                                     "[[\".*\", [\"tp\"]]]"};

struct Token {
    std::size_t begin = 0;
    std::size_t end = 0;
};

/// Strings, numbers and words of a JSON text, roughly.
std::vector<Token> tokens_of(std::string_view text) {
    std::vector<Token> tokens;
    for (std::size_t i = 0; i < text.size();) {
        std::size_t end = i;
        if (text[i] == '"') {
            end = std::min(text.find('"', i + 1), text.size() - 1) + 1;
        } else {
            end = std::min(text.find_first_of(" \t\r\n{}[]:,\"", i), text.size());
        }
        if (end > i) {
            tokens.push_back({i, end});
        }
        i = std::max(end, i + 1);
    }
    return tokens;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned int seed) {
    std::minstd_rand random(seed);
    const std::string text(reinterpret_cast<const char*>(data), size);
    const std::vector<Token> tokens = tokens_of(text);
    if (tokens.empty() || random() % 2 == 0) {
        return LLVMFuzzerMutate(data, size, max_size);
    }
    const Token target = tokens[random() % tokens.size()];
    const Token other = tokens[random() % tokens.size()];
    const std::string_view value = random() % 3 == 0
                                       ? std::string_view(text).substr(other.begin, other.end - other.begin)
                                       : values[random() % values.size()];
    std::string result = text;
    result.replace(target.begin, target.end - target.begin, value);
    const std::size_t length = std::min(result.size(), max_size);
    std::memcpy(data, result.data(), length);
    return length;
}
