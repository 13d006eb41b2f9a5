// For random jobs: what the planner accepts runs, and gives the logits of the unsharded model with exactly the traffic
// and the memory that the plan states.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>

#include "config/job_reader.h"
#include "exec/models.h"
#include "exec/verify.h"
#include "plan/random_jobs.h"
#include "property/seed.h"
#include "report/plan_json.h"
#include "support/mpi_world.h"

using namespace shardplan;

namespace {

std::string text_of(const exec::RunReport& report) {
    const exec::Comparison& c = report.comparison;
    std::string text = fmt::format("logits: {} of {} differ, max |a-b| {:.3g}, relative rms {:.3g}\n", c.failed,
                                   c.compared, c.max_absolute, c.relative_rms);
    for (const exec::TrafficCount& row : report.traffic) {
        text += fmt::format("{}: {} calls for {}, {} bytes for {}, most {}, routed {}\n", mesh::to_string(row.kind),
                            row.counted_calls, row.predicted_calls, row.counted_bytes, row.predicted_bytes,
                            row.most_bytes.value_or(-1), row.routed_bytes.value_or(-1));
    }
    for (const exec::MemoryCount& row : report.memory) {
        text += fmt::format("{}: {} .. {} bytes for {}\n", exec::to_string(row.category), row.lowest, row.highest,
                            row.predicted);
    }
    return text;
}

plan::Job read_job(const std::string& json) {
    diag::Diagnostics diagnostics;
    const auto job = config::read_job({"random", json, ""}, {}, diagnostics);
    if (!job) {
        throw std::logic_error(test::text_of(diagnostics));
    }
    return *job;
}

/// Runs jobs until `wanted` were accepted.
class Runs {
public:
    Runs(comm::World& world, std::uint64_t seed) : world_(world), seed_(seed), jobs_(seed, world.size()) {}

    void until(int wanted) {
        while (accepted_ < wanted) {
            REQUIRE(accepted_ + refused_ < 20 * wanted);
            const std::string json = jobs_.next();
            try {
                try_job(json);
            } catch (const std::exception& error) {
                fmt::print(stderr, "rank {}, seed {}, job {}: {}\n{}\n", world_.rank(), seed_, accepted_ + refused_,
                           error.what(), json);
                throw;
            }
        }
        if (world_.rank() == 0) {
            fmt::print(
                "seed {}: {} random jobs ran on {} ranks, {} with int8 weights, {} were refused, {} collectives of {} "
                "kinds, {} near the bound of bf16 or int8, {} choices of experts at near ties\n",
                seed_, accepted_, world_.size(), int8_, refused_, calls_, kinds_.size(), rounded_, ties_);
        }
        CHECK(calls_ > accepted_);
        CHECK(kinds_.size() >= (world_.size() % 5 == 0 || world_.size() % 7 == 0 ? 3 : 6));
        CHECK(50 * rounded_ <= accepted_);
    }

private:
    std::uint64_t weights_seed() const { return seed_ + static_cast<std::uint64_t>(accepted_); }

    exec::RunReport run(const plan::Job& job, const plan::Plan& plan) {
        exec::RunOptions options;
        options.seed = weights_seed();
        options.steps = job.workload.continues() ? 2 : 1;
        options.threads = 1;
        options.poison = true;
        options.plan_hash = report::plan_hash(plan);
        options.kernels = accepted_ % 2 == 0 ? kernels::KernelSet::reference : kernels::KernelSet::onednn;
        const plan::Plan reference = test::reference_of(job, exec::tokens_needed(plan, options));
        return exec::run_and_verify(plan, reference, world_, options);
    }

    /// Against the same int8 weights nothing may differ; what the rounding to int8 does in models this small misses the
    /// derived bound now and then, as that of bf16.
    bool only_int8_rounding(exec::RunReport report) {
        const bool same_weights = world_.rank() != 0 || report.comparison.passed;
        if (report.rounding) {
            report.comparison = report.rounding->comparison;
        }
        return only_rounding(report) && world_.agree(same_weights);
    }

    /// In models this small the rounding of bf16 misses the bound of `run` now and then (about one job in 400). That is
    /// no proof of a fault when it is near, nothing else differs and the same job is right in f32.
    bool only_rounding(const exec::RunReport& report) {
        const exec::Comparison& c = report.comparison;
        const exec::Tolerance& t = c.tolerance;
        bool near = c.not_finite == 0 && c.relative_rms <= 2.0 * t.rms &&
                    c.max_absolute <= 2.0 * t.absolute * std::max(1.0, c.reference_rms);
        near = near || world_.rank() != 0;  // only rank 0 compares
        const auto equal = [](const auto& row) { return row.equal(); };
        return world_.agree(near && report.problems.empty() &&
                            std::all_of(report.traffic.begin(), report.traffic.end(), equal) &&
                            std::all_of(report.memory.begin(), report.memory.end(), equal));
    }

    bool passes_in_f32(plan::Job job) {
        job.workload.dtype = tensor::DType::f32;
        diag::Diagnostics diagnostics;
        const auto plan = plan::make_plan(job, diagnostics);
        return plan.has_value() && run(job, *plan).passed;
    }

    void try_job(const std::string& json) {
        const plan::Job job = read_job(json);
        diag::Diagnostics diagnostics;
        const auto plan = plan::make_plan(job, diagnostics);
        CHECK_MESSAGE(plan.has_value() != diagnostics.has_errors(), json);
        if (!plan) {
            ++refused_;
            return;
        }
        const exec::RunReport report = run(job, *plan);
        bool good = report.passed;
        if (job.int8_weights) {
            ++int8_;
            if (!good && only_int8_rounding(report)) {
                ++rounded_;
                good = true;
            }
        }
        if (!good && job.workload.dtype == tensor::DType::bf16 && only_rounding(report)) {
            ++rounded_;
            good = passes_in_f32(job);
        }
        CHECK_MESSAGE(good, "seed " << seed_ << ", weights " << weights_seed() << "\n"
                                    << json << "\n"
                                    << text_of(report));
        ++accepted_;
        ties_ += report.routing_ties;
        for (const exec::TrafficCount& row : report.traffic) {
            calls_ += row.counted_calls;
            kinds_[row.kind] += 1;
        }
    }

    comm::World& world_;
    std::uint64_t seed_;
    test::RandomJobs jobs_;
    int accepted_ = 0;
    int refused_ = 0;
    int rounded_ = 0;
    int int8_ = 0;
    std::int64_t ties_ = 0;
    std::int64_t calls_ = 0;
    std::map<mesh::CollectiveKind, int> kinds_;
};

}  // namespace

TEST_CASE("random jobs run as planned") {
    comm::World& world = test::mpi_world();
    Runs(world, test::run_seed()).until(world.size() == 8 ? 250 : 150);
}
