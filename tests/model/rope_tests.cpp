// Frequencies and slopes against values worked out from the published formulas in double precision.
#include "model/rope.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "model/alibi.h"
#include "model/model_cases.h"

namespace shardplan::model {
namespace {

RopeScaling scaled(RopeScalingType type, double factor, std::int64_t original_positions) {
    RopeScaling scaling;
    scaling.type = type;
    scaling.factor = factor;
    scaling.original_positions = original_positions;
    return scaling;
}

void check_equal(const std::vector<float>& got, const std::vector<double>& expected) {
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
        CAPTURE(i);
        CHECK(static_cast<double>(got[i]) == doctest::Approx(expected[i]).epsilon(1e-6));
    }
}

TEST_CASE("inverse frequencies of each scaling") {
    struct Row {
        const char* name;
        std::int64_t dim;
        double theta;
        RopeScaling scaling;
        std::int64_t positions;
        std::vector<double> expected;
    };
    RopeScaling longrope = scaled(RopeScalingType::longrope, 32.0, 4096);
    longrope.short_factors = {1.0, 1.5, 2.0, 2.5};
    longrope.long_factors = {2.0, 4.0, 8.0, 16.0};
    const Row rows[] = {
        {"none", 8, 10000.0, {}, 100000, {1.0, 0.1, 0.01, 0.001}},
        {"linear", 8, 10000.0, scaled(RopeScalingType::linear, 4.0, 0), 10, {0.25, 0.025, 0.0025, 0.00025}},
        {"dynamic, short", 8, 10000.0, scaled(RopeScalingType::dynamic, 2.0, 2048), 2048, {1.0, 0.1, 0.01, 0.001}},
        {"dynamic, long",
         8,
         10000.0,
         scaled(RopeScalingType::dynamic, 2.0, 2048),
         4096,
         {1.0, 0.06933612743506347, 0.004807498567691361, 0.0003333333333333334}},
        {"llama3",
         8,
         500.0,
         scaled(RopeScalingType::llama3, 8.0, 16),
         10,
         {0.5760564010955116, 0.026434281586014102, 0.005590169943749474, 0.0011821770112539697}},
        {"yarn",
         16,
         10000.0,
         scaled(RopeScalingType::yarn, 4.0, 2048),
         10,
         {1.0, 0.31622776601683794, 0.1, 0.02569350598886808, 0.00625, 0.001383496476323666, 0.00025,
          7.905694150420948e-05}},
        {"longrope, short", 8, 10000.0, longrope, 4096, {1.0, 0.06666666666666667, 0.005, 0.0004}},
        {"longrope, long", 8, 10000.0, longrope, 4097, {0.5, 0.025, 0.00125, 6.25e-05}},
    };
    for (const Row& row : rows) {
        CAPTURE(std::string(row.name));
        const RopeSpec rope = make_rope(row.dim, row.theta, row.scaling);
        CHECK(rope.rotary_dim == row.dim);
        check_equal(rope_for_positions(rope, row.positions).inverse_frequencies, row.expected);
    }
}

TEST_CASE("factors on cos and sin") {
    CHECK(make_rope(8, 1e4, {}).attention_factor == 1.0);
    CHECK(make_rope(8, 1e4, scaled(RopeScalingType::yarn, 4.0, 2048)).attention_factor == doctest::Approx(1.138629436));
    RopeScaling yarn = scaled(RopeScalingType::yarn, 4.0, 2048);
    yarn.mscale = yarn.mscale_all_dim = 1.0;
    CHECK(make_rope(8, 1e4, yarn).attention_factor == 1.0);
    yarn.attention_factor = 0.5;
    CHECK(make_rope(8, 1e4, yarn).attention_factor == 0.5);
    RopeScaling longrope = scaled(RopeScalingType::longrope, 32.0, 4096);
    longrope.short_factors = longrope.long_factors = {1.0};
    CHECK(make_rope(2, 1e4, longrope).attention_factor == doctest::Approx(1.190238071));
}

TEST_CASE("the fields of a config") {
    struct Row {
        const char* changes;
        double second;  ///< inverse frequency 1
    };
    const double plain = 0.21544346900318834;  // 10000^(-2/12)
    const Row rows[] = {
        {"{}", plain},
        {R"({"rope_theta": 1000000})", 0.1},
        {R"({"rope_scaling": {"type": "linear", "factor": 2.0}})", plain / 2},
        {R"({"rope_scaling": {"rope_type": "default"}})", plain},
        {R"({"rope_parameters": {"rope_type": "linear", "factor": 4, "rope_theta": 1000000}})", 0.025},
        {R"({"rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 1000000}}})", 0.1},
        {R"({"model_type": "gpt_neox", "rotary_pct": 1.0, "rotary_emb_base": 1000000})", 0.1},
    };
    for (const Row& row : rows) {
        CAPTURE(std::string(row.changes));
        CHECK(static_cast<double>(small_model(row.changes).attention.rope.inverse_frequencies[1]) ==
              doctest::Approx(row.second).epsilon(1e-6));
    }
}

TEST_CASE("the length of the workload chooses the frequencies") {
    const ModelSpec model = small_model(R"({"model_type": "phi3", "original_max_position_embeddings": 32,
        "rope_scaling": {"type": "su", "short_factor": [1, 1, 1, 1, 1, 1], "long_factor": [2, 2, 2, 2, 2, 2]}})");
    Workload workload;
    workload.sequence_length = 32;
    CHECK(build_graph(model, workload).model.attention.rope.inverse_frequencies[0] == 1.0F);
    workload.mode = Mode::decode;
    CHECK(build_graph(model, workload).model.attention.rope.inverse_frequencies[0] == 0.5F);
}

TEST_CASE("slopes of linear biases") {
    check_equal(alibi_slopes(4), {0.25, 0.0625, 0.015625, 0.00390625});
    check_equal(alibi_slopes(6), {0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125});
    check_equal(alibi_slopes_mpt(4, 8.0), {0.25, 0.0625, 0.015625, 0.00390625});
    check_equal(alibi_slopes_mpt(3, 8.0), {0.0625, 0.00390625, 0.25});
    const ModelSpec falcon = small_model(R"({"model_type": "falcon", "alibi": true, "num_attention_heads": 16,
        "hidden_size": 64})");
    for (const float slope : falcon.attention.alibi_slopes) {
        CHECK(slope == tensor::float_from_bf16(tensor::bf16_from_float(slope)));
    }
}

}  // namespace
}  // namespace shardplan::model
