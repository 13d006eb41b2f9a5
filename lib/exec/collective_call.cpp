#include "exec/collective_call.h"

#include <cstring>

namespace shardplan::exec {
namespace {

using mesh::CollectiveKind;

/// Reductions work in place; the plan gives them another value for the result.
void copy_if_moved(const tensor::ConstView& in, const tensor::View& out) {
    if (in.data != out.data && in.bytes() > 0) {
        std::memcpy(out.data, in.data, static_cast<std::size_t>(in.bytes()));
    }
}

std::span<const std::int64_t> numbers(const tensor::ConstView& counts) {
    return {counts.as<std::int64_t>(), static_cast<std::size_t>(counts.count())};
}

void run_permute(comm::Groups& groups, const plan::BlockPlan& block, const plan::CollectiveStep& step,
                 const tensor::ConstView& in, const tensor::View& out) {
    const mesh::Mesh& mesh = groups.mesh();
    const partition::Layout& from = block.values[static_cast<std::size_t>(step.input)].layout;
    const partition::Layout& to = block.values[static_cast<std::size_t>(step.output)].layout;
    std::vector<std::int64_t> destinations;
    const std::vector<std::int64_t> members = mesh.group(groups.rank(), step.axes);
    for (std::size_t position = 0; position < members.size(); ++position) {
        if (partition::permute_source(from, to, mesh, members[position]) == groups.rank()) {
            destinations.push_back(static_cast<std::int64_t>(position));
        }
    }
    const std::int64_t source = partition::permute_source(from, to, mesh, groups.rank());
    groups.permute(step.axes, mesh.position(source, step.axes), destinations, in, out);
}

}  // namespace

void run_collective(comm::Groups& groups, const plan::BlockPlan& block, const plan::CollectiveStep& step,
                    std::span<const tensor::View> views, std::span<std::byte> staging) {
    const auto view = [&](plan::ValueId value) -> const tensor::View& {
        return views[static_cast<std::size_t>(value)];
    };
    const tensor::ConstView in = view(step.input);
    const tensor::View& out = view(step.output);
    switch (step.kind) {
        case CollectiveKind::all_gather: return groups.all_gather(step.axes, step.dim, in, out, staging);
        case CollectiveKind::reduce_scatter: return groups.reduce_scatter(step.axes, step.dim, in, out, staging);
        case CollectiveKind::all_to_all:
            return groups.all_to_all(step.axes, step.dim, step.concat_dim, in, out, staging);
        case CollectiveKind::all_to_all_v:
            return groups.all_to_all_v(step.axes, numbers(view(step.send_counts)), numbers(view(step.receive_counts)),
                                       in, out);
        case CollectiveKind::slice: return groups.slice(step.axes, step.dim, in, out);
        case CollectiveKind::permute: return run_permute(groups, block, step, in, out);
        case CollectiveKind::all_reduce: copy_if_moved(in, out); return groups.all_reduce(step.axes, out, staging);
        case CollectiveKind::all_reduce_max:
            copy_if_moved(in, out);
            return groups.all_reduce_max(step.axes, out, staging);
    }
}

}  // namespace shardplan::exec
