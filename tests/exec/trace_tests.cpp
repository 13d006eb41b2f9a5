#include "exec/trace.h"

#include <doctest/doctest.h>

#include "exec/models.h"
#include "exec/verify.h"

using namespace shardplan;

TEST_CASE("a trace has every executed step of the measured steps of the model, and only where it is asked for") {
    model::Workload workload;
    workload.mode = model::Mode::decode;
    workload.batch_size = 2;
    workload.sequence_length = 3;
    workload.cache_length = 8;
    workload.dtype = tensor::DType::f32;
    const plan::Job job = test::job_of(test::tiny_llama(), workload);
    const plan::Plan plan = test::plan_of(job);
    exec::RunOptions options;
    options.steps = 2;
    options.kernels = kernels::KernelSet::reference;
    const plan::Plan reference = test::reference_of(job, exec::tokens_needed(plan, options));
    CHECK(exec::run_and_verify(plan, reference, *comm::make_self_world(), options).trace.empty());

    options.trace = true;
    const exec::RunReport report = exec::run_and_verify(plan, reference, *comm::make_self_world(), options);
    REQUIRE(report.trace.size() == 1);
    std::size_t steps = 0;
    for (const model::BlockUse& use : plan.sequence) {
        steps += plan.blocks[static_cast<std::size_t>(use.block)].steps.size();
    }
    const std::vector<exec::TraceEvent>& events = report.trace[0];
    CHECK(events.size() == 2 * (steps + 1));  // the prompt is not measured
    CHECK(events.front().run == 0);
    CHECK(events.back().run == 1);
    CHECK(events.back().step == exec::trace_model_step);
    std::int64_t end = 0;
    for (const exec::TraceEvent& event : events) {
        CHECK(event.start >= 0);
        CHECK(event.duration >= 0);
        if (event.step >= 0) {
            CHECK(event.start >= end);  // one step after the other
            end = event.start + event.duration;
        } else {
            CHECK(event.start + event.duration >= end);  // around all of them
        }
    }
}
