#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "base/checked.h"
#include "partition/reshard.h"
#include "partition/reshard_cases.h"
#include "partition/reshard_simulator.h"

namespace shardplan::partition {

using mesh::CollectiveKind;
using test::layout_of;
using test::mesh_of;

namespace {

std::string text_of(const ReshardStep& step, const mesh::Mesh& mesh) {
    std::string axes;
    for (int i = 0; i < step.axes.size(); ++i) {
        axes += (i == 0 ? "" : ",") + mesh.name(step.axes[i]);
    }
    switch (step.kind) {
        case CollectiveKind::all_reduce:
        case CollectiveKind::permute: return fmt::format("{} {}", to_string(step.kind), axes);
        case CollectiveKind::all_to_all:
            return fmt::format("{} {} {}>{}", to_string(step.kind), axes, step.concat_dim, step.dim);
        default: return fmt::format("{} {} {}", to_string(step.kind), axes, step.dim);
    }
}

std::string text_of(const ReshardPath& path, const mesh::Mesh& mesh) {
    std::string text;
    for (const ReshardStep& step : path.steps) {
        text += (text.empty() ? "" : "; ") + text_of(step, mesh);
    }
    return text;
}

/// Bytes that all devices send, counted collective by collective.
struct Wire {
    std::int64_t bytes = 0;
    bool permutes = false;
};

Wire wire_of(const ReshardPath& path, const test::ReshardCase& c) {
    Wire wire;
    Layout before = c.from;
    for (const ReshardStep& step : path.steps) {
        const std::int64_t n = c.mesh.size(step.axes);
        const std::int64_t payload = tensor::byte_count(local_shape(before, c.shape, c.mesh), tensor::DType::f64);
        const bool permute = step.kind == CollectiveKind::permute;
        const std::int64_t movers = permute ? permute_movers(before, step, c.mesh) : 0;
        wire.bytes += c.mesh.device_count() / n * mesh::group_wire_bytes(step.kind, n, payload, movers);
        wire.permutes = wire.permutes || permute;
        before = step.after;
    }
    return wire;
}

/// Per byte of the tensor: all-reduce, gather everything, slice.
double naive_cost(const test::ReshardCase& c) {
    const double local = 1.0 / static_cast<double>(shard_count(c.from, c.mesh));
    const auto n = static_cast<double>(c.mesh.size(c.from.pending - c.to.pending));
    return 2.0 * (n - 1.0) / n * local + 1.0 - local;
}

void check_case(const test::ReshardCase& c, Resharder& resharder) {
    const ReshardPath* path = resharder.path(c.from, c.to);
    REQUIRE(path != nullptr);
    test::ReshardSimulator ranks(c.mesh, c.shape, c.from);
    int collectives = 0;
    for (const ReshardStep& step : path->steps) {
        REQUIRE(is_consistent(step.after));
        REQUIRE(divides(step.after, c.shape, c.mesh));
        ranks.apply(step);
        REQUIRE(ranks.held() == ranks.expected(step.after));
        collectives += step.kind == CollectiveKind::slice ? 0 : 1;
    }
    CHECK(ranks.held() == ranks.expected(c.to));
    CHECK(path->collectives == collectives);
    CHECK(path->wire_per_byte <= naive_cost(c) + 1e-9);

    const Wire wire = wire_of(*path, c);
    const double predicted = path->wire_per_byte * static_cast<double>(c.mesh.device_count()) *
                             static_cast<double>(tensor::byte_count(c.shape, tensor::DType::f64));
    CHECK(static_cast<double>(wire.bytes) <= predicted * (1.0 + 1e-9));
    if (!wire.permutes) {  // of a permute the search counts every block, the plan those that move
        CHECK(static_cast<double>(wire.bytes) == doctest::Approx(predicted));
    }
    if (!c.from.pending.empty()) {
        return;
    }
    const std::vector<test::Held> start = ranks.expected(c.from);
    for (const ReshardStep& step : resharder.path(c.to, c.from)->steps) {
        ranks.apply(step);
    }
    CHECK_MESSAGE(ranks.held() == start, "there and back");
}

}  // namespace

TEST_CASE("the collectives that are expected") {
    struct Row {
        const char* name;
        const char* mesh;
        const char* from;
        const char* to;
        const char* steps;
    };
    const Row rows[] = {
        {"nothing to do", "tp=4", "||tp", "||tp", ""},
        {"weights for use", "fsdp=4,tp=2", "tp|fsdp", "tp|", "all-gather fsdp 1"},
        {"two axes at once", "fsdp=2,sp=2", "|fsdp,sp", "|", "all-gather fsdp,sp 1"},
        {"only the minor axis", "fsdp=2,sp=2", "|fsdp,sp", "|fsdp", "all-gather sp 1"},
        {"replicated to cut", "tp=4", "||", "||tp", "slice tp 2"},
        {"cut over two axes", "a=2,b=2", "|", "|a,b", "slice a,b 1"},
        {"row parallel", "tp=4", "|| +tp", "||", "all-reduce tp"},
        {"sequence parallel", "tp=4", "|| +tp", "|tp|", "reduce-scatter tp 1"},
        {"hidden parallel", "tp=4", "|| +tp", "||tp", "reduce-scatter tp 2"},
        {"sums over two axes", "a=2,b=2", "| +a,b", "|a,b", "reduce-scatter a,b 1"},
        {"one of two sums", "a=2,b=2", "| +a,b", "| +b", "all-reduce a"},
        {"hidden to sequence", "tp=4", "||tp", "|tp|", "all-to-all tp 2>1"},
        {"heads to sequence", "dp=2,sp=4", "dp|sp||", "dp||sp|", "all-to-all sp 1>2"},
        {"other order of axes", "a=2,b=2", "a,b|", "b,a|", "permute a,b"},
        {"other axis, same size", "sp=4,tp=4", "|sp", "|tp", "permute sp,tp"},
        {"dimensions change places", "a=2,b=2", "a|b", "b|a", "permute a,b"},
        {"from one pair to another", "a=2,b=2", "a,b|", "a|b", "all-to-all b 0>1"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const mesh::Mesh mesh = mesh_of(row.mesh);
        Resharder resharder(mesh);
        const ReshardPath* path = resharder.path(layout_of(row.from, mesh), layout_of(row.to, mesh));
        REQUIRE(path != nullptr);
        CHECK(text_of(*path, mesh) == row.steps);
    }
}

TEST_CASE("costs of single collectives") {
    const mesh::Mesh mesh = mesh_of("a=2,tp=4");
    Resharder resharder(mesh);
    const auto cost = [&](const char* from, const char* to) {
        return resharder.path(layout_of(from, mesh), layout_of(to, mesh))->wire_per_byte;
    };
    CHECK(cost("|tp", "|") == doctest::Approx(0.75));
    CHECK(cost("| +tp", "|") == doctest::Approx(1.5));
    CHECK(cost("| +tp", "|tp") == doctest::Approx(0.75));
    CHECK(cost("|tp", "tp|") == doctest::Approx(0.75 / 4));
    CHECK(cost("a|tp", "a|") == doctest::Approx(0.75 / 2));
    CHECK(cost("|", "a|tp") == 0.0);
}

TEST_CASE("a finished value can not become a partial sum again") {
    const mesh::Mesh mesh = mesh_of("a=2,b=2");
    Resharder resharder(mesh);
    CHECK(resharder.path(layout_of("|", mesh), layout_of("| +a", mesh)) == nullptr);
    CHECK(resharder.path(layout_of("| +b", mesh), layout_of("| +a,b", mesh)) == nullptr);
    CHECK(resharder.path(layout_of("| +a", mesh), layout_of("| +a", mesh))->steps.empty());
}

TEST_CASE("random reshards end in exactly the target") {
    test::Random random(11);
    for (int m = 0; m < 600; ++m) {
        const mesh::Mesh mesh = test::random_mesh(random, 64);
        Resharder resharder(mesh);
        for (int i = 0; i < 20; ++i) {
            const test::ReshardCase c = test::random_reshard(random, mesh);
            INFO(c.text());
            INFO(text_of(*resharder.path(c.from, c.to), mesh));
            try {
                check_case(c, resharder);
            } catch (const std::logic_error& error) {
                FAIL_CHECK(error.what());
            }
        }
    }
}

TEST_CASE("paths without a search, when the budget is used up, end in exactly the target as well") {
    test::Random random(13);
    for (int m = 0; m < 200; ++m) {
        const mesh::Mesh mesh = test::random_mesh(random, 64);
        Resharder resharder(mesh, m % 2 == 0 ? 0 : 40);
        for (int i = 0; i < 10; ++i) {
            const test::ReshardCase c = test::random_reshard(random, mesh);
            INFO(c.text());
            check_case(c, resharder);
        }
    }
}

TEST_CASE("no path sends less than the bound that needs no search") {
    test::Random random(14);
    int tight = 0;
    for (int m = 0; m < 100; ++m) {
        const mesh::Mesh mesh = test::random_mesh(random, 64);
        Resharder resharder(mesh);
        for (int i = 0; i < 20; ++i) {
            const test::ReshardCase c = test::random_reshard(random, mesh);
            INFO(c.text());
            const double least = least_wire_per_byte(c.from, c.to, mesh);
            const double found = resharder.path(c.from, c.to)->wire_per_byte;
            CHECK(found >= least * (1.0 - 1e-12));
            tight += least > 0.0 && found <= least * (1.0 + 1e-12) ? 1 : 0;
        }
    }
    CHECK(tight > 20);
}

TEST_CASE("paths do not depend on what was asked before") {
    test::Random random(12);
    const mesh::Mesh mesh = mesh_of("a=2,b=3,c=2");
    Resharder used(mesh);
    for (int i = 0; i < 300; ++i) {
        const test::ReshardCase c = test::random_reshard(random, mesh);
        Resharder fresh(mesh);
        CHECK_MESSAGE(used.path(c.from, c.to)->steps == fresh.path(c.from, c.to)->steps, c.text());
    }
}

}  // namespace shardplan::partition
