#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "partition/reshard_cases.h"

namespace shardplan::partition {

using test::layout_of;
using test::mesh_of;

TEST_CASE("local shapes and ranges") {
    struct Row {
        const char* layout;
        std::int64_t rank;
        tensor::Shape local;
        std::vector<base::Interval> ranges;
        std::int64_t shards;
    };
    const mesh::Mesh mesh = mesh_of("a=2,b=3,c=2");  // rank = a * 6 + b * 2 + c
    const std::vector<Row> rows = {
        {"||", 7, {12, 8, 5}, {{0, 12}, {0, 8}, {0, 5}}, 1},
        {"a||", 7, {6, 8, 5}, {{6, 12}, {0, 8}, {0, 5}}, 2},
        {"b|c|", 7, {4, 4, 5}, {{0, 4}, {4, 8}, {0, 5}}, 6},
        {"a,b||", 9, {2, 8, 5}, {{8, 10}, {0, 8}, {0, 5}}, 6},
        {"b,a||", 9, {2, 8, 5}, {{6, 8}, {0, 8}, {0, 5}}, 6},
        {"c,b,a||", 11, {1, 8, 5}, {{11, 12}, {0, 8}, {0, 5}}, 12},
        {"b|a| +c", 5, {4, 4, 5}, {{8, 12}, {0, 4}, {0, 5}}, 6},
    };
    const tensor::Shape shape = {12, 8, 5};
    for (const Row& row : rows) {
        CAPTURE(row.layout);
        const Layout layout = layout_of(row.layout, mesh);
        REQUIRE(divides(layout, shape, mesh));
        CHECK(local_shape(layout, shape, mesh) == row.local);
        CHECK(local_ranges(layout, shape, mesh, row.rank) == row.ranges);
        CHECK(shard_count(layout, mesh) == row.shards);
    }
    CHECK_FALSE(divides(layout_of("||a", mesh), shape, mesh));
    CHECK_FALSE(divides(layout_of("|b|", mesh), shape, mesh));
    CHECK_FALSE(divides(layout_of("|a,b|", mesh), shape, mesh));
    CHECK(divides(layout_of("|| +a", mesh), shape, mesh));
}

TEST_CASE("no axis may be used twice") {
    const mesh::Mesh mesh = mesh_of("a=2,b=3,c=2");
    for (const char* good : {"|", "a|b", "a,b|c", "c|a +b"}) {
        CHECK_MESSAGE(is_consistent(layout_of(good, mesh)), good);
    }
    for (const char* bad : {"a|a", "a,b|a", "a|b +a", "a,a|"}) {
        CHECK_MESSAGE(!is_consistent(layout_of(bad, mesh)), bad);
    }
}

TEST_CASE("layouts as text") {
    const mesh::Mesh mesh = mesh_of("a=2,b=3,c=2");
    CHECK(to_string(layout_of("a,b||c", mesh), mesh) == "['a','b'][]['c']");
    CHECK(to_string(layout_of("b| +a,c", mesh), mesh) == "['b'][] pending {'a','c'}");
    CHECK(layout_of("b,a|c +c", mesh).sharded() == test::axes_of("a,b,c", mesh).set());
}

TEST_CASE("equal layouts have equal hashes, different ones hardly ever") {
    test::Random random(1);
    std::set<std::string> texts;
    std::set<std::size_t> hashes;
    for (int i = 0; i < 3000; ++i) {
        const mesh::Mesh mesh = mesh_of("a=2,b=2,c=2,d=2");
        const int rank = 1 + static_cast<int>(random.below(4));
        const Layout layout = test::random_layout(random, mesh, rank, test::all_axes(mesh));
        const Layout copy = layout;
        CHECK(hash_value(copy) == hash_value(layout));
        texts.insert(to_string(layout, mesh));
        hashes.insert(hash_value(layout));
    }
    CHECK(texts.size() > 500);
    CHECK(hashes.size() * 10 >= texts.size() * 9);
}

TEST_CASE("shards tile a tensor exactly once per replica") {
    test::Random random(2);
    for (int i = 0; i < 400; ++i) {
        const test::ReshardCase c = test::random_reshard(random, test::random_mesh(random, 48));
        const std::int64_t replicas = c.mesh.device_count() / shard_count(c.from, c.mesh);
        test::Tensor counts(tensor::DType::i32, c.shape);
        std::int64_t elements = 0;
        for (std::int64_t rank = 0; rank < c.mesh.device_count(); ++rank) {
            const auto ranges = local_ranges(c.from, c.shape, c.mesh, rank);
            const tensor::Shape local = local_shape(c.from, c.shape, c.mesh);
            elements += tensor::element_count(local);
            test::generate(tensor::DType::i32, local, [&](const tensor::Shape& index) {
                std::int64_t flat = 0;
                for (std::size_t d = 0; d < index.size(); ++d) {
                    flat = flat * c.shape[d] + ranges[d].begin + index[d];
                }
                counts.view().as<std::int32_t>()[flat] += 1;
                return 0;
            });
        }
        const test::Tensor expected = test::generate(
            tensor::DType::i32, c.shape, [&](const tensor::Shape&) { return static_cast<test::Bits>(replicas); });
        CHECK_MESSAGE(counts == expected, c.text());
        CHECK(elements == replicas * tensor::element_count(c.shape));
    }
}

}  // namespace shardplan::partition
