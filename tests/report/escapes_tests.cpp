#include "report/escapes.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

using namespace shardplan::report;
using namespace std::string_view_literals;

namespace {

struct Row {
    std::string_view text;
    std::string_view message, property, xml, attribute;
};

const std::vector<Row> rows = {
    {"plain"sv, "plain"sv, "plain"sv, "plain"sv, "plain"sv},
    {"100%"sv, "100%25"sv, "100%25"sv, "100%"sv, "100%"sv},
    {"a\r\nb"sv, "a%0D%0Ab"sv, "a%0D%0Ab"sv, "a&#13;\nb"sv, "a&#13;&#10;b"sv},
    {"a:b,c"sv, "a:b,c"sv, "a%3Ab%2Cc"sv, "a:b,c"sv, "a:b,c"sv},
    {"%0A::error::"sv, "%250A::error::"sv, "%250A%3A%3Aerror%3A%3A"sv, "%0A::error::"sv, "%0A::error::"sv},
    {"<a & \"b\">"sv, "<a & \"b\">"sv, "<a & \"b\">"sv, "&lt;a &amp; \"b\"&gt;"sv, "&lt;a &amp; &quot;b&quot;&gt;"sv},
    {"]]>"sv, "]]>"sv, "]]>"sv, "]]&gt;"sv, "]]&gt;"sv},
    {"t\tt"sv, "t\\x09t"sv, "t\\x09t"sv, "t\tt"sv, "t&#9;t"sv},
    {"\x1b[31m\0"sv, "\\x1b[31m\\x00"sv, "\\x1b[31m\\x00"sv, "\\x1b[31m\\x00"sv, "\\x1b[31m\\x00"sv},
    {"\xff\xc3\xa4"sv, "\xef\xbf\xbd\xc3\xa4"sv, "\xef\xbf\xbd\xc3\xa4"sv, "\xef\xbf\xbd\xc3\xa4"sv,
     "\xef\xbf\xbd\xc3\xa4"sv},
    {"\xef\xbf\xbf"sv, "\xef\xbf\xbf"sv, "\xef\xbf\xbf"sv, "\xef\xbf\xbd"sv, "\xef\xbf\xbd"sv},
    {"\xef\xbf\xbd"sv, "\xef\xbf\xbd"sv, "\xef\xbf\xbd"sv, "\xef\xbf\xbd"sv, "\xef\xbf\xbd"sv},
    {"\xe2\x80\xae"sv, "\\u202e"sv, "\\u202e"sv, "\\u202e"sv, "\\u202e"sv},
};

}  // namespace

TEST_CASE("text in workflow commands and in XML") {
    for (const Row& row : rows) {
        CAPTURE(std::string(row.text));
        CHECK(github_message(row.text) == row.message);
        CHECK(github_property(row.text) == row.property);
        CHECK(xml_text(row.text) == row.xml);
        CHECK(xml_attribute(row.text) == row.attribute);
    }
}

TEST_CASE("paths as URI references") {
    CHECK(uri_reference("configs/a-b_c.~1.json") == "configs/a-b_c.~1.json");
    CHECK(uri_reference("a b/100%/#x?y=1:2.json") == "a%20b/100%25/%23x%3Fy%3D1%3A2.json");
    CHECK(uri_reference("\xc3\xa4.json") == "%C3%A4.json");
    CHECK(uri_reference("\xff\n") == "%FF%0A");
    CHECK(uri_reference("/abs/a.json") == "file:///abs/a.json");
    CHECK(uri_reference("../a.json") == "../a.json");
    CHECK(uri_reference("<stdin>") == "%3Cstdin%3E");
    CHECK(uri_reference("").empty());
}
