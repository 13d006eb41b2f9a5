#include "report/boxes.h"

#include <doctest/doctest.h>

#include <sstream>

using namespace shardplan::report;

namespace {

std::string drawn(const BoxGrid& grid, const Style& style) {
    std::ostringstream out;
    draw_boxes(out, grid, style, 0);
    return out.str();
}

}  // namespace

TEST_CASE("boxes have one size and centred text") {
    const BoxGrid grid{{{"0:8", "0-3,8"}, {"8:16"}}, {{"a"}, {"longest line"}}};
    CHECK(drawn(grid, {}) ==
          "┌──────────────┬──────────────┐\n"
          "│     0:8      │     8:16     │\n"
          "│    0-3,8     │              │\n"
          "├──────────────┼──────────────┤\n"
          "│      a       │ longest line │\n"
          "└──────────────┴──────────────┘\n");
    CHECK(drawn({{{"x"}}}, {false, true, 80}) ==
          "+---------+\n"
          "|    x    |\n"
          "+---------+\n");
    CHECK(drawn({}, {}) == "");
}

TEST_CASE("as many boxes as fit") {
    const BoxGrid grid{{{"1234567"}, {"1"}, {"2"}}};
    CHECK(box_width(grid) == 9);
    CHECK(boxes_that_fit(grid, {false, false, 31}, 0) == 3);
    CHECK(boxes_that_fit(grid, {false, false, 30}, 0) == 2);
    CHECK(boxes_that_fit(grid, {false, false, 5}, 0) == 1);
}
