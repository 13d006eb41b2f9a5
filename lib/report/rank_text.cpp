#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ostream>
#include <stdexcept>

#include "plan/pipeline.h"
#include "report/number_text.h"
#include "report/range_text.h"
#include "report/shards_text.h"
#include "report/table.h"
#include "report/tensors_text.h"
#include "report/utf8.h"
#include "report/value_text.h"

namespace shardplan::report {
namespace {

void write_stored(std::ostream& out, const plan::Plan& plan, std::int64_t rank, const Style& style) {
    Table table({{"name", false, 24}, {"shape"}, {"holds", false, 24}, {"size", true}});
    std::string heading;
    const plan::StageTensors of_stage(plan, plan.stages[plan::stage_of(plan, rank)]);
    for (std::size_t i = 0; i < plan.stored.size(); ++i) {
        const plan::StoredTensor& tensor = plan.stored[i];
        if (std::none_of(tensor.layers.begin(), tensor.layers.end(),
                         [&](int layer) { return of_stage.holds(static_cast<int>(i), layer); })) {
            continue;
        }
        plan::StoredTensor held = tensor;
        std::erase_if(held.layers, [&](int layer) { return !of_stage.holds(static_cast<int>(i), layer); });
        const NameParts name = split_name(held);
        if (name.heading != heading && !name.heading.empty()) {
            table.add_heading(fmt::format("{}  (each)", name.heading));
        }
        heading = name.heading;
        const auto ranges = partition::local_ranges(tensor.layout, tensor.shape, plan.mesh.refined(), rank);
        table.add_row({(heading.empty() ? "" : "  ") + name.rest, shape_text(tensor.shape), intervals_text(ranges),
                       bytes_text(tensor.bytes_per_device)});
    }
    table.print(out, style);
}

void add_value(Table& table, const plan::Plan& plan, const plan::BlockPlan& block, std::string_view end,
               plan::ValueId id, std::int64_t rank) {
    const plan::Value& value = value_of(block, id);
    const auto ranges = partition::local_ranges(value.layout, value.shape, plan.mesh.refined(), rank);
    const std::vector<std::string> pending = pending_names(plan, value.layout);
    const std::string partial = pending.empty() ? "" : fmt::format(", a summand over {}", fmt::join(pending, ","));
    table.add_row({fmt::format("{} {} {}", block.name, end, value.name), shape_text(value.shape),
                   intervals_text(ranges) + partial, bytes_text(value.local_bytes)});
}

void write_boundaries(std::ostream& out, const plan::Plan& plan, std::int64_t rank, const Style& style) {
    Table table({{"block", false, 24}, {"shape"}, {"holds", false, 24}, {"size", true}});
    const plan::Stage& stage = plan.stages[plan::stage_of(plan, rank)];
    for (std::size_t b = 0; b < plan.blocks.size(); ++b) {
        const plan::BlockPlan& block = plan.blocks[b];
        if (std::none_of(plan.sequence.begin() + stage.first, plan.sequence.begin() + stage.end,
                         [&](const model::BlockUse& use) { return use.block == static_cast<int>(b); })) {
            continue;
        }
        for (const plan::ValueId id : inputs_of(block)) {
            add_value(table, plan, block, "in", id, rank);
        }
        if (block.output >= 0) {
            add_value(table, plan, block, "out", block.output, rank);
        }
    }
    if (!table.empty()) {
        out << '\n';
        table.print(out, style);
    }
}

std::string stage_text(const plan::Plan& plan, std::int64_t rank) {
    if (!plan.pipeline_axis) {
        return "";
    }
    const std::size_t index = plan::stage_of(plan, rank);
    return fmt::format("; stage {}, layers {} to {}", index, plan.stages[index].first_layer,
                       plan.stages[index].end_layer - 1);
}

}  // namespace

void write_rank_text(std::ostream& out, const plan::Plan& plan, std::int64_t rank, const Style& style) {
    const mesh::Mesh& mesh = plan.mesh.original();
    if (rank < 0 || rank >= mesh.device_count()) {
        throw std::out_of_range(
            fmt::format("rank {} is not in the mesh: ranks are 0 to {}", rank, mesh.device_count() - 1));
    }
    std::vector<std::string> place;
    for (int i = 0; i < mesh.axis_count(); ++i) {
        const mesh::AxisId id{static_cast<std::uint8_t>(i)};
        place.push_back(fmt::format("{}={}", printable(mesh.name(id)), mesh.coordinate(rank, id)));
    }
    out << paint(style, Paint::heading, fmt::format("Rank {}", rank))
        << fmt::format(" at {} of {}{}\n\n", fmt::join(place, ", "), mesh_text(mesh), stage_text(plan, rank));
    write_stored(out, plan, rank, style);
    write_boundaries(out, plan, rank, style);
}

}  // namespace shardplan::report
