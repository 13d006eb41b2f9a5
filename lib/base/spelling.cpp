#include "base/spelling.h"

#include <algorithm>
#include <cstddef>

namespace shardplan::base {

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1);
    std::vector<std::size_t> last(b.size() + 1);
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) {
        last[j] = j;
    }
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + change});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = std::min(row[j], before[j - 2] + 1);
            }
        }
        std::swap(before, last);
        std::swap(last, row);
    }
    return last[b.size()];
}

std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates) {
    constexpr std::size_t longest_compared = 64;
    if (word.size() > longest_compared) {
        return "";
    }
    std::size_t best = std::max<std::size_t>(1, word.size() / 3) + 1;
    std::string result;
    for (const std::string& candidate : candidates) {
        const std::size_t distance = edit_distance(word, candidate);
        // "dp" is no misspelt "tp": of two letters both must be there.
        if (word.size() <= 2 && candidate.size() == word.size() &&
            !std::is_permutation(word.begin(), word.end(), candidate.begin())) {
            continue;
        }
        if (distance < best) {
            best = distance;
            result = candidate;
        }
    }
    return result;
}

}  // namespace shardplan::base
