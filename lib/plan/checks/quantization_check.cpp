#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "plan/checks/checks.h"
#include "plan/checks/size_hints.h"

namespace shardplan::plan {

using model::ParameterKind;
using partition::Phase;
using partition::Semantic;

namespace {

/// A dimension that is cut, and the run of elements that share a scale along it.
struct Cut {
    Semantic semantic;
    const char* dimension;
    std::int64_t size;
    std::int64_t group;
    bool of_experts = false;      ///< what cuts the experts does not cut within them
    std::int64_t most_parts = 0;  ///< further devices hold copies; 0 = no limit
};

void check_cut(const CheckContext& context, const std::string& tensor, const Cut& cut, std::set<std::string>& seen) {
    const Job& job = context.plan.job;
    partition::ResolvedEntry entry = job.partition_axis.resolve(cut.semantic, Phase::train);
    if (cut.of_experts) {
        const partition::SpecEntry experts = job.partition_axis.resolve(Semantic::expert, Phase::train).axes;
        std::erase_if(entry.axes, [&](const std::string& axis) {
            return std::find(experts.begin(), experts.end(), axis) != experts.end();
        });
    }
    const partition::SpecEntry axes = context.placer.existing_axes(entry, tensor);
    const std::int64_t devices = context.placer.size_of(axes);
    const std::int64_t parts = cut.most_parts > 0 ? std::min(devices, cut.most_parts) : devices;
    if (parts == 1 || cut.group <= 1 || cut.size % parts != 0 || (cut.size / parts) % cut.group == 0 ||
        !seen.insert(cut.dimension).second) {
        return;
    }
    const std::int64_t step = base::checked_mul(cut.group, parts);
    const bool whole = cut.size % cut.group == 0;
    context.diagnostics.report(
        "SP4009",
        fmt::format("{} {} over {} {} leaves {} of {} per device, not a multiple of the {} elements that share a "
                    "quantisation scale",
                    cut.dimension, cut.size, entry.field, describe_axes(axes, job.mesh), cut.size / parts, tensor,
                    cut.group),
        context.placer.pointer_of(entry),
        (whole ? fmt::format("the {} groups divide over: {}; or ", cut.size / cut.group,
                             divisors_text(cut.size / cut.group))
               : std::string()) +
            fmt::format("pad {} to {}, or remove quantization_config to plan unquantised weights", cut.dimension,
                        base::checked_mul(base::ceil_div(cut.size, step), step)));
}

}  // namespace

void check_quantization(const CheckContext& context) {
    const Job& job = context.plan.job;
    const model::QuantizationSpec& quantization = job.model.quantization;
    if (job.rule_source != partition::RuleSource::derived || (quantization.group == 0 && quantization.rows == 0)) {
        return;
    }
    std::set<std::string> seen;
    for (const model::Parameter& parameter : context.plan.graph.parameters) {
        if (parameter.parallel == model::ParallelDim::experts) {
            const bool down = parameter.kind == ParameterKind::expert_row;
            check_cut(context, parameter.name,
                      {Semantic::mlp_intermediate, "moe_intermediate_size", job.model.moe.intermediate,
                       down ? quantization.group : quantization.rows, true},
                      seen);
            continue;
        }
        const bool row = parameter.kind == ParameterKind::row_linear;
        const bool column = parameter.kind == ParameterKind::column_linear;
        const bool output_first = !parameter.transposed;
        if ((!row && !column) || parameter.shape.size() != 2) {
            continue;
        }
        const std::int64_t size = parameter.shape[row == output_first ? 1 : 0];
        const std::int64_t group = row ? quantization.group : quantization.rows;
        switch (parameter.parallel) {
            case model::ParallelDim::heads:
                check_cut(context, parameter.name, {Semantic::head, "num_attention_heads * head_dim", size, group},
                          seen);
                break;
            case model::ParallelDim::kv_heads:
                check_cut(context, parameter.name,
                          {Semantic::kv_head, "num_key_value_heads * head_dim", size, group, false,
                           job.options.kv_heads == KvHeads::split ? 0 : job.model.attention.kv_heads},
                          seen);
                break;
            case model::ParallelDim::mlp:
                check_cut(context, parameter.name, {Semantic::mlp_intermediate, "intermediate_size", size, group},
                          seen);
                break;
            default: break;
        }
    }
}

}  // namespace shardplan::plan
