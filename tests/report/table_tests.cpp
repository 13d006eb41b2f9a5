#include "report/table.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <sstream>

#include "report/text_width.h"
#include "report/utf8.h"

using namespace shardplan::report;

namespace {

std::string printed(const Table& table, const Style& style, int indent = 0) {
    std::ostringstream out;
    table.print(out, style, indent);
    return out.str();
}

std::string without_blanks(std::string text) {
    std::erase(text, ' ');
    return text;
}

}  // namespace

TEST_CASE("a table aligns, heads and notes") {
    Table table({{"name"}, {"size", true}});
    table.add_row({"a", "1"});
    table.add_heading("group");
    table.add_row({"longer", "1,000"});
    table.add_note("why", 1);
    table.add_row({"empty"});
    CHECK(printed(table, {false, true, 80}, 1) ==
          " name     size\n"
          " -------------\n"
          " a           1\n"
          " group\n"
          " longer  1,000\n"
          "         why\n"
          " empty\n");
}

TEST_CASE("long cells fold to the width, numbers do not") {
    Table table({{"name", false, 6}, {"size", true}});
    table.add_row({"one two three", "1,000,000"});
    CHECK(printed(table, {false, true, 20}) ==
          "name            size\n"
          "--------------------\n"
          "one two    1,000,000\n"
          "three\n");
    CHECK(printed(table, {false, true, 4}).find("1,000,000") != std::string::npos);
}

TEST_CASE("the column with the fewest long cells folds first") {
    Table table({{"many", false, 4}, {"one", false, 4}});
    table.add_row({"aaa bbb", "c"});
    table.add_row({"ddd eee", "fff ggg"});
    CHECK(printed(table, {false, true, 13}) ==
          "many     one\n"
          "-------------\n"
          "aaa bbb  c\n"
          "ddd eee  fff\n"
          "         ggg\n");
}

TEST_CASE("widths of characters") {
    CHECK(display_width("abc") == 3);
    CHECK(display_width("\xc3\xa4") == 1);
    CHECK(display_width("a\xcc\x88") == 1);         // combining
    CHECK(display_width("\xe6\xbc\xa2") == 2);      // wide
    CHECK(display_width("\xf0\x9f\x98\x80") == 2);  // emoji
    CHECK(display_width("\xff") == 1);
    CHECK(fitting_head("\xe6\xbc\xa2x", 2) == "\xe6\xbc\xa2");
    CHECK(fitting_head("\xe6\xbc\xa2x", 1) == "");
}

TEST_CASE("breaking lines") {
    using Lines = std::vector<std::string>;
    CHECK(wrap("", 5) == Lines{""});
    CHECK(wrap("one two", 7) == Lines{"one two"});
    CHECK(wrap("one two", 5) == Lines{"one", "two"});
    CHECK(wrap("one two", 3) == Lines{"one", "two"});
    CHECK(wrap("self_attn.q_proj", 12) == Lines{"self_attn.q_", "proj"});
    CHECK(wrap("abcdef", 4) == Lines{"abcd", "ef"});
    CHECK(wrap("  a.b.c.d", 6) == Lines{"  a.b.", "  c.d"});
}

TEST_CASE("breaking loses nothing but blanks and keeps to the width") {
    CHECK(rc::check([] {
        const auto text = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab ._[,")));
        const int width = *rc::gen::inRange(1, 12);
        std::string joined;
        for (const std::string& line : wrap(text, width)) {
            RC_ASSERT(display_width(line) <= std::max(width, 2));
            joined += line;
        }
        RC_ASSERT(without_blanks(joined) == without_blanks(text));
    }));
}

TEST_CASE("what is printed cannot move the cursor") {
    CHECK(printable("a\x1b[2J\n\x7f") == "a\\x1b[2J\\x0a\\x7f");
    CHECK(printable("\xc2\x9b") == "\\x9b");
    CHECK(printable("\xe2\x80\xae") == "\\u202e");
    CHECK(printable("\xff\xc3\xa4") == "\xef\xbf\xbd\xc3\xa4");
}
