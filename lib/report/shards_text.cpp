#include "report/shards_text.h"
#include "plan/pipeline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <ostream>
#include <vector>

#include "report/boxes.h"
#include "report/number_text.h"
#include "report/range_text.h"
#include "report/text_width.h"
#include "report/utf8.h"
#include "report/value_text.h"

namespace shardplan::report {
namespace {

constexpr std::int64_t most_rows = 8;
constexpr std::int64_t most_rows_alone = 32;  // where there is one column
constexpr std::int64_t most_columns = 16;
constexpr int device_width = 24;
constexpr std::size_t device_lines = 3;
constexpr int indent = 2;

/// Dimensions that rows and columns of the grid stand for; -1 = not cut.
struct GridDims {
    int rows = -1;
    int columns = -1;
};

std::int64_t parts_of(const mesh::Mesh& mesh, const TensorRef& tensor, int dim) {
    return dim < 0 ? 1 : mesh.size(tensor.layout[dim]);
}

std::vector<int> cut_dims(const mesh::Mesh& mesh, const TensorRef& tensor) {
    std::vector<int> dims;
    for (int d = 0; d < tensor.layout.rank; ++d) {
        if (parts_of(mesh, tensor, d) > 1) {
            dims.push_back(d);
        }
    }
    return dims;
}

GridDims choose_dims(const mesh::Mesh& mesh, const TensorRef& tensor) {
    std::vector<int> dims = cut_dims(mesh, tensor);
    std::stable_sort(dims.begin(), dims.end(),
                     [&](int a, int b) { return parts_of(mesh, tensor, a) > parts_of(mesh, tensor, b); });
    if (dims.size() >= 2) {
        return {std::min(dims[0], dims[1]), std::max(dims[0], dims[1])};
    }
    if (dims.empty()) {
        return {};
    }
    return dims[0] == tensor.layout.rank - 1 ? GridDims{-1, dims[0]} : GridDims{dims[0], -1};
}

/// Axes that do not cut the tensor, in mesh order, so that groups along them are ascending.
mesh::AxisList free_axes(const mesh::Mesh& mesh, const TensorRef& tensor) {
    mesh::AxisList axes;
    for (int i = 0; i < mesh.axis_count(); ++i) {
        const mesh::AxisId id{static_cast<std::uint8_t>(i)};
        if (!tensor.layout.sharded().contains(id)) {
            axes.push_back(id);
        }
    }
    return axes;
}

/// Box (row, column): its ranges and the devices that hold it, a few lines of them.
BoxText box_text(const plan::Plan& plan, const TensorRef& tensor, const GridDims& dims, std::int64_t row,
                 std::int64_t column) {
    const mesh::Mesh& mesh = plan.mesh.refined();
    std::int64_t rank = 0;
    const auto enter = [&](int dim, std::int64_t position) {
        if (dim >= 0) {
            rank = mesh.rank_at(rank, tensor.layout[dim], position);
        }
    };
    enter(dims.rows, row);
    enter(dims.columns, column);
    std::vector<std::int64_t> devices = mesh.group(rank, free_axes(mesh, tensor));
    std::erase_if(devices, [&](std::int64_t device) {
        const std::size_t stage = plan::stage_of(plan, device);
        return !tensor.stages.empty() &&
               std::find(tensor.stages.begin(), tensor.stages.end(), stage) == tensor.stages.end();
    });
    BoxText lines{intervals_text(partition::local_ranges(tensor.layout, tensor.shape, mesh, rank))};
    for (const std::string& line : wrap(fold_devices(devices), device_width)) {
        if (lines.size() > device_lines) {
            lines.back() = fmt::format("... {} devices", devices.size());
            break;
        }
        lines.push_back(line);
    }
    return lines;
}

BoxGrid make_grid(const plan::Plan& plan, const TensorRef& tensor, const GridDims& dims, const Style& style) {
    const mesh::Mesh& mesh = plan.mesh.refined();
    BoxGrid grid;
    const std::int64_t columns = std::min(parts_of(mesh, tensor, dims.columns), most_columns);
    const std::int64_t rows =
        std::min(parts_of(mesh, tensor, dims.rows), dims.columns < 0 ? most_rows_alone : most_rows);
    for (std::int64_t r = 0; r < rows; ++r) {
        std::vector<BoxText>& row = grid.emplace_back();
        for (std::int64_t c = 0; c < columns; ++c) {
            row.push_back(box_text(plan, tensor, dims, r, c));
        }
    }
    const auto fit = static_cast<std::size_t>(boxes_that_fit(grid, style, indent));
    for (std::vector<BoxText>& row : grid) {
        row.resize(std::min(row.size(), fit));
    }
    return grid;
}

/// True when a list of devices is written with a stride ("0-12:4"); ranges of indices stand in brackets.
bool has_stride(const BoxGrid& grid) {
    const auto strided = [](const std::string& line) {
        return line.front() != '[' && line.find(':') != std::string::npos;
    };
    return std::any_of(grid.begin(), grid.end(), [&](const std::vector<BoxText>& row) {
        return std::any_of(row.begin(), row.end(),
                           [&](const BoxText& box) { return std::any_of(box.begin(), box.end(), strided); });
    });
}

void write_head(std::ostream& out, const plan::Plan& plan, const TensorRef& tensor, const Style& style) {
    const mesh::Mesh& mesh = plan.mesh.refined();
    const std::int64_t parts = partition::shard_count(tensor.layout, mesh);
    const tensor::Shape local = partition::local_shape(tensor.layout, tensor.shape, mesh);
    const std::int64_t all = tensor.stages.empty()
                                 ? mesh.device_count()
                                 : static_cast<std::int64_t>(tensor.stages.size()) * plan::stage_devices(plan);
    const std::int64_t holders = all / parts;
    out << paint(style, Paint::heading, printable(tensor.name))
        << fmt::format("  {} {} {}\n", shape_text(tensor.shape), tensor::to_string(tensor.dtype),
                       layout_text(plan, tensor.layout));
    out << fmt::format("{} part{} of {}, {} each, on {} device{} each\n", count_text(parts), parts == 1 ? "" : "s",
                       shape_text(local), bytes_text(tensor::byte_count(local, tensor.dtype)), count_text(holders),
                       holders == 1 ? "" : "s");
    if (!tensor.stages.empty()) {
        out << fmt::format("in stage{} {} of the pipeline, each for its own layers\n",
                           tensor.stages.size() == 1 ? "" : "s", fmt::join(tensor.stages, ", "));
    }
    const std::vector<std::string> pending = pending_names(plan, tensor.layout);
    if (!pending.empty()) {
        out << fmt::format("every device holds a summand: the value is the sum over {}\n",
                           printable(fmt::format("{}", fmt::join(pending, ","))));
    }
}

void write_dims(std::ostream& out, const plan::Plan& plan, const TensorRef& tensor, const GridDims& dims) {
    const mesh::Mesh& mesh = plan.mesh.refined();
    for (const int d : cut_dims(mesh, tensor)) {
        const std::string names = printable(partition::to_string(plan.mesh.names(tensor.layout[d])));
        if (d == dims.rows || d == dims.columns) {
            out << fmt::format("{}: dimension {} over {}\n", d == dims.rows ? "downwards" : "to the right", d, names);
        } else {
            out << fmt::format("dimension {} is cut into {} over {} as well: its first part is drawn\n", d,
                               parts_of(mesh, tensor, d), names);
        }
    }
}

}  // namespace

void draw_shards(std::ostream& out, const plan::Plan& plan, const TensorRef& tensor, const Style& style) {
    const mesh::Mesh& mesh = plan.mesh.refined();
    const GridDims dims = choose_dims(mesh, tensor);
    const BoxGrid grid = make_grid(plan, tensor, dims, style);
    write_head(out, plan, tensor, style);
    write_dims(out, plan, tensor, dims);
    draw_boxes(out, grid, style, indent);
    if (has_stride(grid)) {
        out << "a-b:s are the devices a, a+s, a+2s, .., b\n";
    }
    const auto drawn = static_cast<std::int64_t>(grid.size() * grid.front().size());
    const std::int64_t parts = partition::shard_count(tensor.layout, mesh);
    if (drawn < parts) {
        out << fmt::format("{} of {} boxes are not drawn\n", count_text(parts - drawn), count_text(parts));
    }
}

ShardsResult write_shards_text(std::ostream& out, const plan::Plan& plan, std::string_view query, const Style& style) {
    const Lookup lookup = find_tensors(plan, query);
    if (lookup.matches.empty()) {
        out << fmt::format("no tensor is called '{}'\n", printable(query));
        if (!lookup.hint.empty()) {
            out << paint(style, Paint::note, "hint") << fmt::format(": did you mean '{}'?\n", printable(lookup.hint));
        }
        return ShardsResult::not_found;
    }
    if (lookup.matches.size() > 1) {
        out << fmt::format("{} tensors match '{}':\n", lookup.matches.size(), printable(query));
        for (const TensorRef& match : lookup.matches) {
            out << fmt::format("  {}  {} {}\n", printable(match.name), shape_text(match.shape),
                               layout_text(plan, match.layout));
        }
        return ShardsResult::several;
    }
    draw_shards(out, plan, lookup.matches.front(), style);
    return ShardsResult::drawn;
}

}  // namespace shardplan::report
