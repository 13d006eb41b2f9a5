#include "base/spelling.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>

using namespace shardplan::base;

TEST_CASE("edit_distance") {
    struct Row {
        const char* a;
        const char* b;
        std::size_t distance;
    };
    const Row rows[] = {
        {"", "", 0},         {"", "abc", 3},         {"batch", "batch", 0}, {"batch", "bach", 1},
        {"head", "heed", 1}, {"head", "haed", 1},    {"ab", "ba", 1},       {"kitten", "sitting", 3},
        {"axis", "axes", 1}, {"abcd", "badc", 2},    {"ca", "abc", 3},      {"tp", "fsdp", 3},
        {"a", "b", 1},       {"hidden", "hiden", 1},
    };
    for (const Row& row : rows) {
        CAPTURE(row.a);
        CAPTURE(row.b);
        CHECK(edit_distance(row.a, row.b) == row.distance);
        CHECK(edit_distance(row.b, row.a) == row.distance);
    }
}

TEST_CASE("edit_distance of one edit is one") {
    const auto letters = rc::gen::container<std::string>(rc::gen::inRange('a', 'f'));
    CHECK(rc::check("bounds", [=] {
        const std::string a = *letters;
        const std::string b = *letters;
        const std::size_t distance = edit_distance(a, b);
        RC_ASSERT((distance == 0) == (a == b));
        RC_ASSERT(distance <= std::max(a.size(), b.size()));
        RC_ASSERT(distance >= std::max(a.size(), b.size()) - std::min(a.size(), b.size()));
    }));
    CHECK(rc::check("one edit", [=] {
        const std::string word = *letters;
        const std::size_t at = *rc::gen::inRange<std::size_t>(0, word.size() + 1);
        std::string longer = word;
        longer.insert(at, 1, 'z');
        RC_ASSERT(edit_distance(word, longer) == 1U);
        if (at + 1 < word.size() && word[at] != word[at + 1]) {
            std::string swapped = word;
            std::swap(swapped[at], swapped[at + 1]);
            RC_ASSERT(edit_distance(word, swapped) == 1U);
        }
    }));
}

TEST_CASE("nearest_word offers only what is near") {
    const std::vector<std::string> fields = {"batch_axis", "sequence_axis", "head_axis", "dp", "tp"};
    struct Row {
        const char* word;
        const char* nearest;
    };
    const Row rows[] = {
        {"batch_axs", "batch_axis"},  // one missing
        {"sequnce_axes", "sequence_axis"},
        {"haed_axis", "head_axis"},  // swapped neighbours
        {"tp", "tp"},
        {"td", ""},  // half of it is another word
        {"xy", ""},
        {"completely_other", ""},
        {"ep", ""},
        {"", ""},
    };
    for (const Row& row : rows) {
        CAPTURE(row.word);
        CHECK(nearest_word(row.word, fields) == row.nearest);
    }
    CHECK(nearest_word("axis", {}).empty());
}

TEST_CASE("of words with two letters only the same letters, or one more or less, are near") {
    CHECK(nearest_word("dp", {"tp"}).empty());
    CHECK(nearest_word("pt", {"tp"}) == "tp");
    CHECK(nearest_word("t", {"tp"}) == "tp");
    CHECK(nearest_word("ttp", {"tp"}) == "tp");
}

TEST_CASE("nearest_word does not compare words of any length") {
    const std::string longest(64, 'a');
    CHECK(nearest_word(longest, {longest}) == longest);
    CHECK(nearest_word(longest + "a", {longest}).empty());
}
