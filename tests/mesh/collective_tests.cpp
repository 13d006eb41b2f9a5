#include "mesh/collective.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <limits>
#include <set>

#include "base/checked.h"

using namespace shardplan::mesh;
using Kind = CollectiveKind;

namespace {

constexpr Kind all_kinds[] = {Kind::all_gather, Kind::reduce_scatter, Kind::all_reduce, Kind::all_reduce_max,
                              Kind::all_to_all, Kind::all_to_all_v,   Kind::permute,    Kind::slice};

}  // namespace

TEST_CASE("bytes on the wire of a group of 4 with 1200 bytes on each rank") {
    struct Row {
        Kind kind;
        std::int64_t bytes;
    };
    const Row rows[] = {
        {Kind::all_gather, 4 * 3 * 1200},  // each rank sends its block to 3 others
        {Kind::reduce_scatter, 3 * 1200},  // each rank sends 3 of its 4 blocks of 300
        {Kind::all_to_all, 3 * 1200},      // likewise
        {Kind::all_reduce, 2 * 3 * 1200},  // reduce-scatter, then all-gather of the blocks of 300
        {Kind::all_reduce_max, 2 * 3 * 1200}, {Kind::permute, 0}, {Kind::slice, 0},
    };
    for (const Row& row : rows) {
        CAPTURE(to_string(row.kind));
        CHECK(group_wire_bytes(row.kind, 4, 1200) == row.bytes);
    }
    CHECK(group_wire_bytes(Kind::permute, 4, 1200, 3) == 3600);
    CHECK(group_wire_bytes(Kind::all_to_all_v, 4, 256, 17) == 17 * 256);  // 17 rows leave their rank
}

TEST_CASE("a group of one sends nothing") {
    for (const Kind kind : all_kinds) {
        CAPTURE(to_string(kind));
        CHECK(group_wire_bytes(kind, 1, 4096) == 0);
    }
}

TEST_CASE("an all-reduce costs a reduce-scatter and an all-gather of the blocks") {
    CHECK(rc::check("sum", [] {
        const auto n = *rc::gen::inRange<std::int64_t>(1, 64);
        const auto block = *rc::gen::inRange<std::int64_t>(0, 1000000);
        RC_ASSERT(group_wire_bytes(Kind::all_reduce, n, n * block) ==
                  group_wire_bytes(Kind::reduce_scatter, n, n * block) + group_wire_bytes(Kind::all_gather, n, block));
    }));
}

TEST_CASE("bytes that do not fit in 64 bits throw") {
    constexpr std::int64_t payload = std::numeric_limits<std::int64_t>::max() / 4;
    for (const Kind kind : {Kind::all_gather, Kind::reduce_scatter, Kind::all_reduce, Kind::all_to_all}) {
        CAPTURE(to_string(kind));
        CHECK_THROWS_AS(group_wire_bytes(kind, 8, payload), shardplan::base::OverflowError);
    }
}

TEST_CASE("staging of a group of 4, elements of 4 bytes") {
    struct Row {
        Kind kind;
        std::int64_t input, output, staging;
    };
    const Row rows[] = {
        {Kind::all_gather, 40, 160, 160},   {Kind::reduce_scatter, 160, 40, 320}, {Kind::all_to_all, 160, 160, 320},
        {Kind::all_reduce, 160, 160, 160},  {Kind::all_reduce, 40, 40, 48},  // 10 elements in 4 chunks of 3
        {Kind::all_reduce, 4, 4, 16},                                        // fewer elements than ranks
        {Kind::all_reduce_max, 40, 40, 48}, {Kind::permute, 160, 160, 0},         {Kind::slice, 160, 40, 0},
        {Kind::all_to_all_v, 160, 320, 0},
    };
    for (const Row& row : rows) {
        CAPTURE(to_string(row.kind));
        CAPTURE(row.input);
        CHECK(staging_bytes(row.kind, 4, row.input, row.output, 4) == row.staging);
    }
}

TEST_CASE("kinds have different names") {
    std::set<std::string_view> names;
    for (const Kind kind : all_kinds) {
        CHECK(names.insert(to_string(kind)).second);
    }
    CHECK(to_string(Kind::all_reduce_max) == "all-reduce-max");
}
