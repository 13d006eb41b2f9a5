#include "report/pipeline_text.h"

#include <fmt/format.h>

#include <array>

#include "plan/pipeline.h"
#include "report/number_text.h"
#include "report/table.h"
#include "report/utf8.h"

namespace shardplan::report {
namespace {

std::string layers_text(const plan::Stage& stage) {
    return stage.end_layer - stage.first_layer == 1 ? std::to_string(stage.first_layer)
                                                    : fmt::format("{} - {}", stage.first_layer, stage.end_layer - 1);
}

}  // namespace

void write_pipeline_text(std::ostream& out, const plan::Plan& plan, const Style& style) {
    if (!plan.pipeline_axis) {
        return;
    }
    out << '\n'
        << paint(style, Paint::heading,
                 fmt::format("Stages along {}, {} micro-batch{}",
                             printable(plan.mesh.refined().name(*plan.pipeline_axis)), plan.job.workload.micro_batches,
                             plan.job.workload.micro_batches == 1 ? "" : "es"))
        << '\n';
    Table table({{"stage", true},
                 {"layers"},
                 {"with"},
                 {"parameters", true},
                 {"memory/device", true},
                 {"flop/device", true},
                 {"hands on/device", true}});
    for (std::size_t s = 0; s < plan.stages.size(); ++s) {
        const plan::Stage& stage = plan.stages[s];
        const bool first = s == 0;
        const bool last = s + 1 == plan.stages.size();
        table.add_row({std::to_string(s), layers_text(stage),
                       first && last ? "embedding, head"
                       : first       ? "embedding"
                       : last        ? "head"
                                     : "",
                       bytes_text(stage.memory.parameters), bytes_text(stage.memory.total()),
                       flops_text(stage.flops_per_device), last ? "" : bytes_text(stage.sent_bytes)});
    }
    table.print(out, style);
}

void write_pipeline_json(JsonWriter& json, const plan::Plan& plan) {
    if (!plan.pipeline_axis) {
        json.field("pipeline", nullptr);
        return;
    }
    json.object("pipeline", [&] {
        json.field("axis", plan.mesh.refined().name(*plan.pipeline_axis));
        json.field("micro_batches", plan.job.workload.micro_batches);
        json.array("stages", plan.stages, [&](const plan::Stage& stage) {
            json.object(
                [&] {
                    json.list("layers", std::array{stage.first_layer, stage.end_layer});
                    json.list("uses", std::array{stage.first, stage.end});
                    json.field("parameters", stage.memory.parameters);
                    json.field("cache", stage.memory.cache);
                    json.field("arena", stage.memory.arena);
                    json.field("activations", stage.memory.activations);
                    json.field("communication", stage.memory.communication);
                    json.field("flops_per_device", stage.flops_per_device);
                    json.field("sent_bytes", stage.sent_bytes);
                },
                JsonLayout::one_line);
        });
    });
}

}  // namespace shardplan::report
