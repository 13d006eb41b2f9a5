#include "plan/step_work.h"

#include <doctest/doctest.h>

#include "planning.h"

namespace shardplan {
namespace {

// The llama of planning.h: per layer q and o 64 x 64, k and v 64 x 32, three matrices 64 x 96, two norms of 64;
// embedding and head 128 x 64, a last norm.
constexpr std::int64_t linears = 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 96;
constexpr std::int64_t read = 2 * (linears + 2 * 64) + 64 + 128 * 64;
constexpr const char* no_hidden = R"("hidden_state_axis": null)";

plan::StepWork work_of(const test::JobText& text) {
    return plan::step_work(test::plan_of(text));
}

TEST_CASE("a step reads every weight once, but of the embeddings only rows") {
    CHECK(work_of({.mesh = R"("tp": 1)"}).bytes == 4 * read);
}

TEST_CASE("cut weights are read once, replicated ones on every device") {
    const std::int64_t norms = 4 * 5 * 64;
    CHECK(work_of({.mesh = R"("tp": 4)", .axes = no_hidden}).bytes == 4 * read + 3 * norms);
}

TEST_CASE("in decode the filled rows of the caches are read too") {
    const std::string workload = R"("mode": "decode", "batch_size": 2, "sequence_length": 16, "cache_length": 64)";
    const std::int64_t rows = 2 * 2 * 2 * 17 * 32;  // layers, keys and values, sequences, tokens, numbers
    CHECK(work_of({.mesh = R"("tp": 1)", .workload = workload}).bytes == 4 * (read + rows));
    CHECK(work_of({.mesh = R"("tp": 2)", .axes = no_hidden, .workload = workload}).bytes ==
          4 * (read + rows) + 4 * 5 * 64);
}

TEST_CASE("flops are those of all devices, whatever the mesh") {
    const double matmuls = 2.0 * 2 * 16 * (2 * linears + 128 * 64);
    const double one = work_of({.mesh = R"("tp": 1)"}).flops;
    CHECK(one > matmuls);  // attention comes on top
    CHECK(one < 1.5 * matmuls);
    CHECK(work_of({.mesh = R"("tp": 4)", .axes = no_hidden}).flops == doctest::Approx(one));
}

TEST_CASE("stages of a pipeline add up") {
    const plan::StepWork one = work_of({.mesh = R"("tp": 1)"});
    const plan::StepWork two = work_of({.mesh = R"("pp": 2)"});
    CHECK(two.flops == doctest::Approx(one.flops));
}

}  // namespace
}  // namespace shardplan
