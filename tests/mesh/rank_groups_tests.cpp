// Our groups of ranks against those of Megatron-Core's rank generator, recorded in data/golden_megatron_ranks.json.
// There the leftmost axis of the order varies fastest, here the last one: the axes are reversed.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "mesh/mesh.h"

using namespace shardplan::mesh;

namespace {

using Groups = std::vector<std::vector<std::int64_t>>;

nlohmann::json read_golden() {
    std::ifstream file(SHARDPLAN_SOURCE_DIR "/tests/data/golden_megatron_ranks.json");
    REQUIRE(file.good());
    return nlohmann::json::parse(file);
}

Mesh reversed_mesh(std::vector<Axis> axes) {
    std::reverse(axes.begin(), axes.end());
    return Mesh(axes);
}

/// "tp-dp", tp varying fastest, as our list {dp, tp}.
AxisList reversed_list(const Mesh& mesh, std::string token) {
    AxisList list;
    while (!token.empty()) {
        const std::size_t dash = token.rfind('-');
        const std::string name = dash == std::string::npos ? token : token.substr(dash + 1);
        REQUIRE(mesh.find(name).has_value());
        list.push_back(*mesh.find(name));
        token.resize(dash == std::string::npos ? 0 : dash);
    }
    return list;
}

}  // namespace

TEST_CASE("groups equal those of Megatron-Core") {
    struct Row {
        const char* name;
        std::vector<Axis> order;  ///< fastest first
    };
    const Row rows[] = {
        {"dense tp2 cp1 dp2 pp2", {{"tp", 2}, {"cp", 1}, {"ep", 1}, {"dp", 2}, {"pp", 2}}},
        {"dense tp2 cp2 dp2 pp1", {{"tp", 2}, {"cp", 2}, {"ep", 1}, {"dp", 2}, {"pp", 1}}},
        {"expert etp1 ep4 edp1 pp2", {{"tp", 1}, {"cp", 1}, {"ep", 4}, {"dp", 1}, {"pp", 2}}},
        {"expert etp2 ep2 edp2 pp1", {{"tp", 2}, {"cp", 1}, {"ep", 2}, {"dp", 2}, {"pp", 1}}},
        {"order tp-pp-dp", {{"tp", 2}, {"pp", 2}, {"dp", 2}}},
    };
    const nlohmann::json golden = read_golden();
    const auto recorded = std::count_if(golden.begin(), golden.end(), [](const auto& row) { return row.is_object(); });
    CHECK(recorded == std::size(rows));
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const Mesh mesh = reversed_mesh(row.order);
        REQUIRE(golden.contains(row.name));
        for (const auto& [token, groups] : golden.at(row.name).items()) {
            CAPTURE(token);
            CHECK(mesh.groups(reversed_list(mesh, token)) == groups.get<Groups>());
        }
    }
}
