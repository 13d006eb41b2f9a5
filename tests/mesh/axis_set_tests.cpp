#include <doctest/doctest.h>

#include "mesh/mesh.h"

using namespace shardplan::mesh;

namespace {

constexpr AxisId a{0};
constexpr AxisId b{1};
constexpr AxisId last{max_axes - 1};

}  // namespace

TEST_CASE("a set of axes") {
    AxisSet set{a, last};
    CHECK(set.contains(a));
    CHECK_FALSE(set.contains(b));
    CHECK(set.contains(last));
    CHECK(set == AxisSet{last, a, a});
    set.erase(a);
    set.erase(b);
    CHECK(set == AxisSet{last});
    set.erase(last);
    CHECK(set.empty());
    CHECK(set == AxisSet{});
}

TEST_CASE("operations on sets of axes") {
    const AxisSet ab{a, b};
    const AxisSet b_last{b, last};
    CHECK((ab | b_last) == AxisSet{a, b, last});
    CHECK((ab & b_last) == AxisSet{b});
    CHECK((ab - b_last) == AxisSet{a});
    CHECK(ab.intersects(b_last));
    CHECK_FALSE(AxisSet{a}.intersects(b_last));
    CHECK(ab.includes(AxisSet{a}));
    CHECK(ab.includes(AxisSet{}));
    CHECK_FALSE(ab.includes(b_last));
    CHECK(AxisSet{b}.bits() == 2U);
}

TEST_CASE("a list of axes keeps its order") {
    const AxisList list{b, last, a};
    CHECK(list.size() == 3);
    CHECK(list[0] == b);
    CHECK(list.back() == a);
    CHECK(list != AxisList{a, last, b});
    CHECK(list.set() == AxisSet{a, b, last});
    CHECK(list.prefix(2) == AxisList{b, last});
    CHECK(list.suffix_from(1) == AxisList{last, a});
    CHECK(list.prefix(0).empty());
    CHECK(list.suffix_from(3).empty());
}

TEST_CASE("starts_with compares from the major axis on") {
    const AxisList list{b, last, a};
    CHECK(list.starts_with({}));
    CHECK(list.starts_with({b, last}));
    CHECK(list.starts_with(list));
    CHECK_FALSE(list.starts_with({last}));
    CHECK_FALSE(AxisList{b}.starts_with(list));
}

TEST_CASE("an axis that was removed leaves no trace") {
    AxisList list{b};
    list.push_back(last);
    list.pop_back();
    CHECK(list == AxisList{b});
}
