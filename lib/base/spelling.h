// "Did you mean": the nearest of a list of words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardplan::base {

/// Levenshtein distance with adjacent transpositions counted as one edit.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate nearest to `word`, or "" when none is near enough (distance <= max(1, length / 3)).
std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace shardplan::base
