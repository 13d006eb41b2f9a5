#include "report/value_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/range_text.h"
#include "report/utf8.h"

namespace shardplan::report {

std::string shape_text(const tensor::Shape& shape) {
    return fmt::format("[{}]", fmt::join(shape, ","));
}

std::string stored_name(const plan::StoredTensor& tensor) {
    const std::string part = tensor.part.empty() ? "" : fmt::format(" [{}]", tensor.part);
    return folded_name(tensor.name, tensor.layers) + part;
}

std::vector<std::string> pending_names(const plan::Plan& plan, const partition::Layout& layout) {
    mesh::AxisList axes;
    for (int i = 0; i < plan.mesh.refined().axis_count(); ++i) {
        const mesh::AxisId id{static_cast<std::uint8_t>(i)};
        if (layout.pending.contains(id)) {
            axes.push_back(id);
        }
    }
    return axes.empty() ? std::vector<std::string>{} : plan.mesh.names(axes);
}

std::string layout_text(const plan::Plan& plan, const partition::Layout& layout) {
    const std::vector<std::string> pending = pending_names(plan, layout);
    const std::string partial = pending.empty() ? "" : fmt::format(" partial over {}", fmt::join(pending, ","));
    return printable(to_string(plan.mesh.spec(layout)) + partial);
}

std::string mesh_text(const mesh::Mesh& mesh) {
    std::vector<std::string> axes;
    for (const mesh::Axis& axis : mesh.axes()) {
        axes.push_back(fmt::format("{}={}", printable(axis.name), axis.size));
    }
    const std::int64_t devices = mesh.device_count();
    return fmt::format("{} ({} device{})", fmt::join(axes, ", "), devices, devices == 1 ? "" : "s");
}

const plan::Value& value_of(const plan::BlockPlan& block, plan::ValueId id) {
    return block.values.at(static_cast<std::size_t>(id));
}

std::vector<plan::ValueId> inputs_of(const plan::BlockPlan& block) {
    std::vector<plan::ValueId> inputs;
    for (std::size_t i = 0; i < block.values.size(); ++i) {
        if (block.values[i].kind == plan::ValueKind::input) {
            inputs.push_back(static_cast<plan::ValueId>(i));
        }
    }
    return inputs;
}

std::vector<std::int64_t> uses_of_blocks(const plan::Plan& plan) {
    std::vector<std::int64_t> uses(plan.blocks.size(), 0);
    for (const model::BlockUse& use : plan.sequence) {
        ++uses.at(static_cast<std::size_t>(use.block));
    }
    return uses;
}

}  // namespace shardplan::report
