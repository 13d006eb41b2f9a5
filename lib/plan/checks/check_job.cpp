#include "plan/checks/check_job.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/checks/checks.h"
#include "plan/front_end.h"

namespace shardplan::plan {
namespace {

/// An upper bound for every sum of bytes that lowering may form: each tensor once per layer and device, times a
/// generous number of collectives of each.
bool near_overflow(const Plan& plan) {
    constexpr double moves_per_tensor = 64.0;
    double bytes = 0.0;
    for (const model::Block& block : plan.graph.blocks) {
        double of_block = 0.0;
        for (const model::TensorInfo& tensor : block.tensors) {
            double size = 8.0;
            for (const std::int64_t extent : tensor.shape) {
                size *= static_cast<double>(extent);
            }
            of_block += size;
        }
        bytes += of_block * static_cast<double>(std::max<std::size_t>(1, block.layers.size()));
    }
    return bytes * moves_per_tensor * static_cast<double>(plan.job.mesh.device_count()) > 0x1p62;
}

/// What the plan would list as notes.
void report_notes(const Plan& plan, diag::Diagnostics& diagnostics) {
    const std::vector<std::string>& of_model = plan.job.model.notes;
    for (const std::string& note : plan.notes) {
        const bool is_model = std::find(of_model.begin(), of_model.end(), note) != of_model.end();
        diagnostics.report("SP2004", note,
                           is_model ? "/model" : (note.starts_with("axis") ? "/mesh/axes" : "/workload"));
    }
}

}  // namespace

void report_overflow(const base::OverflowError& error, diag::Diagnostics& diagnostics) {
    diagnostics.report("SP2005", fmt::format("a size of this job does not fit in 64 bits: {}", error.what()), "/model",
                       "byte counts of all devices together must stay below 2^63");
}

void check_job(const Job& job, diag::Diagnostics& diagnostics) {
    diag::Diagnostics found;
    bool lower = job.device_memory.has_value();
    try {
        FrontEnd front(job, found);
        const bool good = front.run();
        lower = good && (lower || near_overflow(front.plan()));
        report_notes(front.plan(), found);
    } catch (const base::OverflowError& error) {
        report_overflow(error, found);
        lower = false;
    }
    if (lower) {
        diag::Diagnostics lowered;
        if (!make_plan(job, lowered)) {
            found = std::move(lowered);
        }
    }
    for (diag::Diagnostic& diagnostic : found.all()) {
        diagnostics.add(std::move(diagnostic));
    }
}

}  // namespace shardplan::plan
