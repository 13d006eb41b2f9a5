#include "report/json_writer.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

using nlohmann::json;
using shardplan::report::JsonLayout;
using shardplan::report::JsonWriter;

namespace {

template <class T>
std::string written(const T& scalar) {
    std::ostringstream out;
    JsonWriter(out).value(scalar);
    return out.str();
}

/// What any reader makes of bytes that may be no UTF-8: nlohmann's own replacement.
std::string replaced(const std::string& text) {
    return json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace)).get<std::string>();
}

}  // namespace

TEST_CASE("the layout of a document") {
    std::ostringstream out;
    JsonWriter writer(out);
    writer.object([&] {
        writer.field("a", 1);
        writer.list("b", std::array{1, 2});
        writer.list("none", std::vector<int>{});
        writer.array("c", std::array{3, 4}, [&](int i) { writer.object([&] { writer.field("i", i); }); });
        writer.object("d", [] {});
        writer.array(
            "e", std::array{5}, [&](int i) { writer.object([&] {
                                                 writer.list("x", std::array{i, i});
                                             }); },
            JsonLayout::one_line);
        writer.list("f", std::array{"x", "y"}, JsonLayout::lines);
    });
    CHECK(out.str() == R"({
  "a": 1,
  "b": [1, 2],
  "none": [],
  "c": [
    {
      "i": 3
    },
    {
      "i": 4
    }
  ],
  "d": {},
  "e": [{"x": [5, 5]}],
  "f": [
    "x",
    "y"
  ]
}
)");
}

TEST_CASE("scalars") {
    CHECK(written(true) == "true");
    CHECK(written(nullptr) == "null");
    CHECK(written(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775808");
    CHECK(written(std::numeric_limits<std::uint64_t>::max()) == "18446744073709551615");
    CHECK(written(0.1) == "0.1");
    CHECK(written(1.0) == "1.0");
    CHECK(written(-0.0) == "-0.0");
    CHECK(written(1e300) == "1e+300");
    CHECK(written(std::nan("")) == "null");
    CHECK(written(-std::numeric_limits<double>::infinity()) == "null");
    CHECK(written("text") == "\"text\"");
}

TEST_CASE("every control character is escaped and reads back") {
    for (int c = 0; c < 0x80; ++c) {
        const std::string text = std::string("<") + static_cast<char>(c) + ">";
        const std::string out = written(text);
        CAPTURE(out);
        CHECK(json::parse(out) == text);
        for (const char byte : out) {
            CHECK(static_cast<unsigned char>(byte) >= 0x20);
        }
    }
    CHECK(written(std::string("\"\\\b\f\n\r\t\x01\x1f")) == R"("\"\\\b\f\n\r\t\u0001\u001f")");
}

TEST_CASE("invalid UTF-8 is replaced, valid passes") {
    const std::string replacement = "\xef\xbf\xbd";
    CHECK(written(std::string("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80")) == "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"");
    CHECK(written(std::string("a\xff"
                              "b")) == "\"a" + replacement + "b\"");
    for (const std::string bad :
         {"\x80", "\xc0\x80", "\xc3", "\xe2\x82", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xf4\x90\x80\x80"}) {
        const std::string out = written("x" + bad + "y");
        CAPTURE(out);
        const std::string read = json::parse(out).get<std::string>();
        CHECK(read.starts_with("x" + replacement));
        CHECK(read.ends_with("y"));
    }
}

TEST_CASE("any bytes give JSON; UTF-8 survives") {
    CHECK(rc::check([](const std::string& bytes) {
        const std::string read = json::parse(written(bytes)).get<std::string>();
        const bool valid = replaced(bytes) == bytes;
        RC_CLASSIFY(valid);
        RC_ASSERT(!valid || read == bytes);
    }));
}

TEST_CASE("any double reads back equal") {
    CHECK(rc::check([](double number) {
        const json read = json::parse(written(number));
        RC_ASSERT(read.is_number_float());
        RC_ASSERT(read.get<double>() == number);
    }));
}
