#include "exec/decode_feed.h"

#include <doctest/doctest.h>

#include "exec/greedy.h"
#include "exec/models.h"
#include "exec/verify.h"

using namespace shardplan;
using exec::DecodeFeed;

namespace {

model::Workload decode_of(std::int64_t prompt, std::int64_t cache) {
    model::Workload workload;
    workload.mode = model::Mode::decode;
    workload.batch_size = 2;
    workload.sequence_length = prompt;
    workload.cache_length = cache;
    workload.dtype = tensor::DType::f32;
    return workload;
}

exec::RunReport run(const plan::Job& job, const exec::RunOptions& options) {
    const plan::Plan plan = test::plan_of(job);
    return exec::run_and_verify(plan, test::reference_of(job, exec::tokens_needed(plan, options)),
                                *comm::make_self_world(), options);
}

}  // namespace

TEST_CASE("prompts of different lengths end with the same step") {
    const DecodeFeed feed({3, 1}, 3, 2, false);
    CHECK(feed.first_measured() == 3);
    CHECK(feed.steps() == 5);
    const std::vector<std::vector<std::int64_t>> positions = {{0, 0}, {1, 0}, {2, 0}, {3, 1}, {4, 2}};
    for (std::int64_t step = 0; step < feed.steps(); ++step) {
        CHECK(feed.positions(step) == positions[static_cast<std::size_t>(step)]);
    }
    const exec::TokenBatch all{2, 5, {10, 11, 12, 13, 14, 20, 21, 22, 23, 24}};
    CHECK(feed.tokens(all, 1).ids == std::vector<std::int32_t>{11, 20});
    CHECK(feed.tokens(all, 4).ids == std::vector<std::int32_t>{14, 22});
}

TEST_CASE("a generated token is fed behind its sequence; the last one is not fed") {
    const DecodeFeed feed({3, 1}, 3, 2, true);
    CHECK(feed.first_measured() == 2);
    CHECK(feed.steps() == 4);
    exec::TokenBatch all{2, 4, {10, 11, 12, 0, 20, 0, 0, 0}};
    feed.append(all, 2, std::vector<std::int32_t>{13, 21});
    CHECK(all.ids == std::vector<std::int32_t>{10, 11, 12, 13, 20, 21, 0, 0});
    feed.append(all, 3, std::vector<std::int32_t>{14, 22});
    CHECK(all.ids == std::vector<std::int32_t>{10, 11, 12, 13, 20, 21, 22, 0});
}

TEST_CASE("several tokens at once: steps are counted backwards from the end of the prompt") {
    const DecodeFeed feed({5, 2, 0}, 5, 2, false, 4);
    CHECK(feed.first_measured() == 2);
    CHECK(feed.steps() == 4);
    const std::vector<std::vector<std::int64_t>> positions = {{0, 0, 0}, {1, 0, 0}, {5, 2, 0}, {9, 6, 4}};
    for (std::int64_t step = 0; step < feed.steps(); ++step) {
        CHECK(feed.positions(step) == positions[static_cast<std::size_t>(step)]);
    }
    exec::TokenBatch all{3, 13, {}};
    for (std::int32_t i = 0; i < 39; ++i) {
        all.ids.push_back(i);
    }
    CHECK(feed.tokens(all, 2).ids == std::vector<std::int32_t>{5, 6, 7, 8, 15, 16, 17, 18, 26, 27, 28, 29});
    CHECK_THROWS_AS(DecodeFeed({3}, 3, 1, true, 2), std::invalid_argument);
}

TEST_CASE("inserted tokens see what their own sequence holds, however much that is") {
    for (const char* family : {"llama", "gpt2", "bloom", "gemma2", "mixtral", "llama4", "deepseek_v2"}) {
        CAPTURE(family);
        plan::Job job = test::job_of(test::tiny_model(family), decode_of(9, 32));
        job.workload.mode = model::Mode::insert;
        job.workload.insert_length = 4;
        exec::RunOptions options;
        options.poison = true;
        options.steps = 3;
        for (const std::vector<std::int64_t>& lengths : {std::vector<std::int64_t>{}, {9, 0}, {3, 8}}) {
            options.prompt_lengths = lengths;
            const exec::RunReport report = run(job, options);
            CHECK(report.passed);
            CHECK(report.comparison.compared == 2 * 3 * 4 * 64);
        }
        options.prompt_lengths = {10, 0};
        CHECK(run(job, options).problems.size() == 1);
    }
}

TEST_CASE("prompts that are empty or too long have no feed") {
    CHECK_THROWS_AS(DecodeFeed({-1}, 3, 1, false), std::invalid_argument);
    CHECK_THROWS_AS(DecodeFeed({4}, 3, 1, false), std::invalid_argument);
    CHECK_THROWS_AS(DecodeFeed({}, 3, 1, false), std::invalid_argument);
    CHECK_THROWS_AS(DecodeFeed({3}, 3, 0, true), std::invalid_argument);
}

TEST_CASE("the greedy token is the first of the largest, never NaN") {
    CHECK(exec::greedy_token(std::vector<float>{1, 3, 2, 3}) == 1);
    CHECK(exec::greedy_token(std::vector<float>{std::nanf(""), -7, -8}) == 1);
}

TEST_CASE("sequences of different lengths generate what each generates alone") {
    for (const char* family : {"llama", "gpt2", "bloom", "gemma2", "mixtral"}) {
        CAPTURE(family);
        const plan::Job job = test::job_of(test::tiny_model(family), decode_of(7, 16));
        exec::RunOptions options;
        options.generate = true;
        options.poison = true;
        options.steps = 6;
        options.tokens = exec::seeded_tokens(3, 2, 7, 64);
        options.prompt_lengths = {7, 4};
        const exec::RunReport mixed = run(job, options);
        CHECK(mixed.passed);
        CHECK(mixed.token_mismatches == 0);
        CHECK(mixed.comparison.compared == 2 * 6 * 64);
        for (const std::size_t b : {0U, 1U}) {
            options.prompt_lengths = std::vector<std::int64_t>(2, b == 0 ? 7 : 4);
            const exec::RunReport alone = run(job, options);
            CHECK(alone.passed);
            CHECK(alone.generated[b] == mixed.generated[b]);
        }
    }
}

TEST_CASE("what there is no room for is refused before anything runs") {
    plan::Job job = test::job_of(test::tiny_llama(), decode_of(7, 9));
    exec::RunOptions options;
    options.generate = true;
    options.steps = 3;
    CHECK(run(job, options).passed);
    options.steps = 4;
    exec::RunReport report = run(job, options);
    REQUIRE(report.problems.size() == 1);
    CHECK(report.problems[0].code == "SP7002");
    CHECK(report.problems[0].hint == "generate 3 or fewer");
    CHECK(report.executed_steps == 0);
    options.prompt_lengths = {5, 2};  // leaves room for two more
    options.steps = 5;
    report = run(job, options);
    CHECK(report.passed);
    CHECK(report.comparison.compared == 2 * 5 * 64);
    CHECK(report.executed_steps == 4 + 5);
    options.steps = 6;
    report = run(job, options);
    REQUIRE(report.problems.size() == 1);
    CHECK(report.problems[0].hint == "generate 5 or fewer");
    options.generate = false;
    CHECK(run(job, options).measured_steps == 4);
    options.generate = true;
    options.steps = 2;
    for (const std::vector<std::int64_t>& lengths : {std::vector<std::int64_t>{7}, {7, 8}, {0, 7}}) {
        options.prompt_lengths = lengths;
        CHECK(run(job, options).problems.size() == 1);
    }
    job.workload.mode = model::Mode::prefill;
    options.generate = false;
    options.prompt_lengths = {7, 7};
    CHECK(run(job, options).problems.size() == 1);
}

TEST_CASE("a table of learned positions limits the steps as the cache does") {
    const plan::Job job = test::job_of(test::tiny_gpt2(), decode_of(62, 80));
    exec::RunOptions options;
    options.steps = 10;
    const exec::RunReport report = run(job, options);
    CHECK(report.passed);
    CHECK(report.measured_steps == 2);
}
