#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ostream>
#include <stdexcept>

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
    for (const plan::StoredTensor& tensor : plan.stored) {
        const NameParts name = split_name(tensor);
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
    for (const plan::BlockPlan& block : plan.blocks) {
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
        << fmt::format(" at {} of {}\n\n", fmt::join(place, ", "), mesh_text(mesh));
    write_stored(out, plan, rank, style);
    write_boundaries(out, plan, rank, style);
}

}  // namespace shardplan::report
