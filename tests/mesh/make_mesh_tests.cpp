// Axes as users write them: the rules of make_mesh and parse_axes.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "mesh/mesh.h"

using namespace shardplan;
using namespace shardplan::mesh;

TEST_CASE("make_mesh fills one wildcard from the number of devices") {
    struct Row {
        std::vector<Axis> axes;
        std::int64_t devices;
        std::vector<Axis> expected;
    };
    const Row rows[] = {
        {{{"dp", 1}, {"fsdp", -1}, {"tp", 2}}, 8, {{"dp", 1}, {"fsdp", 4}, {"tp", 2}}},
        {{{"dp", -1}}, 6, {{"dp", 6}}},
        {{{"dp", 2}, {"tp", -1}}, 2, {{"dp", 2}, {"tp", 1}}},
        {{{"dp", 2}, {"tp", 3}}, 6, {{"dp", 2}, {"tp", 3}}},
    };
    for (const Row& row : rows) {
        diag::Diagnostics diagnostics;
        const auto mesh = make_mesh(row.axes, row.devices, "/mesh", diagnostics);
        REQUIRE(mesh.has_value());
        CHECK(mesh->axes() == row.expected);
        CHECK(mesh->device_count() == row.devices);
        CHECK(diagnostics.all().empty());
    }
}

TEST_CASE("make_mesh without a number of devices takes the product") {
    diag::Diagnostics diagnostics;
    const auto mesh = make_mesh({{"dp", 3}, {"tp", 5}}, std::nullopt, "/mesh", diagnostics);
    REQUIRE(mesh.has_value());
    CHECK(mesh->device_count() == 15);
}

TEST_CASE("make_mesh refuses") {
    struct Row {
        const char* why;
        std::vector<Axis> axes;
        std::optional<std::int64_t> devices;
        const char* code;
        const char* pointer;
        const char* message;  ///< a part of it
    };
    const Row rows[] = {
        {"two wildcards", {{"dp", -1}, {"tp", -1}}, 8, "SP3002", "/mesh/dp", "only one axis may be -1, got 2"},
        {"a remainder", {{"dp", 4}, {"tp", -1}}, 6, "SP3002", "/mesh/tp", "6 devices are not a multiple of 4"},
        {"nothing to fill from", {{"dp", -1}}, std::nullopt, "SP3002", "/mesh/dp", "number of devices is not given"},
        {"too few devices", {{"dp", 4}, {"tp", 2}}, 4, "SP3003", "/mesh", "dp=4,tp=2 has 8 devices, but 4"},
        {"too many devices", {{"dp", 2}}, 4, "SP3003", "/mesh", "has 2 devices, but 4"},
        {"size zero", {{"dp", 2}, {"tp", 0}}, 2, "SP3001", "/mesh/tp", "at least 1, got 0"},
        {"another negative size", {{"dp", -2}}, 2, "SP3001", "/mesh/dp", "at least 1, got -2"},
        {"a name twice", {{"dp", 2}, {"dp", 2}}, 4, "SP3001", "/mesh/dp", "'dp' stands twice"},
        {"no name", {{"", 2}}, 2, "SP3001", "/mesh", "needs a name"},
        {"no axes", {}, 1, "SP3001", "/mesh", "1 to 15 axes, got 0"},
        {"a name with a slash", {{"a/b", 0}}, 1, "SP3001", "/mesh/a~1b", "got 0"},
        {"a huge mesh", {{"a", 1 << 30}, {"b", 1 << 30}, {"c", 1 << 30}}, 1, "SP3001", "/mesh", "more than"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.why);
        diag::Diagnostics diagnostics;
        CHECK_FALSE(make_mesh(row.axes, row.devices, "/mesh", diagnostics).has_value());
        REQUIRE(diagnostics.all().size() == 1);
        const diag::Diagnostic& found = diagnostics.all()[0];
        CHECK(found.code == row.code);
        CHECK(found.pointer == row.pointer);
        CHECK_MESSAGE(found.message.find(row.message) != std::string::npos, found.message);
    }
}

TEST_CASE("make_mesh limits the number of axes and reports every bad axis") {
    diag::Diagnostics diagnostics;
    std::vector<Axis> axes;
    for (int i = 0; i < max_axes; ++i) {
        axes.push_back({fmt::format("a{}", i), 1});
    }
    CHECK(make_mesh(axes, std::nullopt, "", diagnostics).has_value());
    axes.push_back({"one too many", 1});
    CHECK_FALSE(make_mesh(axes, std::nullopt, "", diagnostics).has_value());
    CHECK(diagnostics.error_count() == 1);
    CHECK_FALSE(make_mesh({{"x", 0}, {"y", 0}, {"z", 1}}, std::nullopt, "", diagnostics).has_value());
    CHECK(diagnostics.error_count() == 3);
}

TEST_CASE("parse_axes reads names and sizes in their order") {
    struct Row {
        const char* text;
        std::vector<Axis> axes;
    };
    const Row rows[] = {
        {"dp=2,tp=4", {{"dp", 2}, {"tp", 4}}},
        {"tp=4,dp=2", {{"tp", 4}, {"dp", 2}}},
        {"dp:2,tp:4", {{"dp", 2}, {"tp", 4}}},
        {"fsdp=-1", {{"fsdp", -1}}},
        {"a=0", {{"a", 0}}},  // the rules are make_mesh's
    };
    for (const Row& row : rows) {
        CAPTURE(row.text);
        diag::Diagnostics diagnostics;
        CHECK(parse_axes(row.text, "/mesh", diagnostics) == row.axes);
        CHECK(diagnostics.all().empty());
    }
}

TEST_CASE("parse_axes refuses all else") {
    for (const char* text : {"", ",", "dp", "dp=", "=2", "dp=2,", ",dp=2", "dp=two", "dp=2x", "dp=2=3", "dp= 2", "2,4",
                             "dp=+2", "dp=99999999999999999999", "dp=2;tp=4"}) {
        CAPTURE(text);
        diag::Diagnostics diagnostics;
        CHECK_FALSE(parse_axes(text, "/mesh", diagnostics).has_value());
        REQUIRE(diagnostics.all().size() == 1);
        CHECK(diagnostics.all()[0].code == "SP3001");
        CHECK(diagnostics.all()[0].pointer == "/mesh");
    }
}
