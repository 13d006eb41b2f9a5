#include "exec/parameter_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>

namespace shardplan::exec {
namespace {

/// The stored tensors of a linear's weights; empty unless all of them are used just as they are stored.
std::vector<int> stored_weights(const plan::BlockPlan& block, const LinearStep& linear) {
    std::vector<int> group;
    for (const LinearPart& part : linear.parts) {
        const plan::Value& weight = block.values[static_cast<std::size_t>(part.weight)];
        if (weight.kind != plan::ValueKind::parameter) {
            return {};
        }
        group.push_back(weight.stored);
    }
    return group;
}

std::size_t instance_of(const plan::StoredTensor& stored, int layer) {
    const auto found = std::find(stored.layers.begin(), stored.layers.end(), layer);
    if (found == stored.layers.end()) {
        throw std::logic_error(fmt::format("{} has no instance in layer {}", stored.name, layer));
    }
    return static_cast<std::size_t>(found - stored.layers.begin());
}

}  // namespace

ParameterStore::ParameterStore(const plan::Plan& plan, std::int64_t rank, const kernels::Kernels& kernels,
                               const WeightSource& source, Allocator& allocator)
    : plan_(plan),
      of_stage_(plan, plan.stages[plan::stage_of(plan, rank)]),
      transposed_(plan::prepared_groups(plan)),
      plain_(plan.stored.size()) {
    std::set<int> done;
    for (const Group& group : groups_by_size()) {
        load_group(group, rank, kernels, source, allocator);
        done.insert(group.begin(), group.end());
    }
    for (std::size_t i = 0; i < plan.stored.size(); ++i) {
        if (plan.stored[i].kind == plan::StoredKind::parameter && !done.contains(static_cast<int>(i))) {
            load_plain(static_cast<int>(i), rank, source, allocator);
        }
    }
}

/// The largest first: while one is prepared it exists twice, and then the least else is there.
std::vector<ParameterStore::Group> ParameterStore::groups_by_size() const {
    const auto bytes = [&](const Group& group) {
        std::int64_t sum = 0;
        for (const int stored : group) {
            sum += plan_.stored[static_cast<std::size_t>(stored)].bytes_per_device;
        }
        return sum;
    };
    std::vector<Group> groups;
    for (const auto& [group, transposed] : transposed_) {
        groups.push_back(group);
    }
    std::stable_sort(groups.begin(), groups.end(), [&](const Group& a, const Group& b) { return bytes(a) > bytes(b); });
    return groups;
}

void ParameterStore::load_plain(int stored, std::int64_t rank, const WeightSource& source, Allocator& allocator) {
    const plan::StoredTensor& tensor = plan_.stored[static_cast<std::size_t>(stored)];
    const model::Parameter& parameter = plan_.graph.parameters[static_cast<std::size_t>(tensor.parameter)];
    const auto ranges = partition::local_ranges(tensor.layout, tensor.shape, plan_.mesh.refined(), rank);
    for (const int layer : tensor.layers) {
        if (!of_stage_.holds(stored, layer)) {
            plain_[static_cast<std::size_t>(stored)].emplace_back();
            continue;
        }
        Buffer buffer(allocator, Category::parameters, tensor.bytes_per_device);
        source.fill(parameter, layer, ranges, buffer.view(tensor.dtype, tensor.local_shape));
        plain_[static_cast<std::size_t>(stored)].push_back(std::move(buffer));
    }
}

void ParameterStore::load_group(const Group& group, std::int64_t rank, const kernels::Kernels& kernels,
                                const WeightSource& source, Allocator& allocator) {
    for (const int layer : plan_.stored[static_cast<std::size_t>(group.front())].layers) {
        std::vector<Prepared>& parts = prepared_[group].emplace_back();
        for (const int stored : group) {
            if (of_stage_.holds(stored, layer)) {
                parts.push_back(load_prepared(stored, layer, transposed_.at(group), rank, kernels, source, allocator));
            }
        }
    }
}

ParameterStore::Prepared ParameterStore::load_prepared(int stored, int layer, bool transposed, std::int64_t rank,
                                                       const kernels::Kernels& kernels, const WeightSource& source,
                                                       Allocator& allocator) const {
    const plan::StoredTensor& tensor = plan_.stored[static_cast<std::size_t>(stored)];
    const model::Parameter& parameter = plan_.graph.parameters[static_cast<std::size_t>(tensor.parameter)];
    const auto ranges = partition::local_ranges(tensor.layout, tensor.shape, plan_.mesh.refined(), rank);
    const std::int64_t bytes = tensor.bytes_per_device;
    const tensor::DType dtype = plan_.graph.workload.dtype;  // of the source; int8 is what it is kept in
    const Buffer buffer(allocator, Category::scratch, tensor::byte_count(tensor.local_shape, dtype));
    const tensor::View whole = buffer.view(dtype, tensor.local_shape);
    source.fill(parameter, layer, ranges, whole);
    Prepared prepared;
    prepared.weight =
        kernels.prepare(whole, transposed ? kernels::WeightOrder::in_out : kernels::WeightOrder::out_in,
                        tensor.dtype == tensor::DType::i8 ? kernels::WeightFormat::int8 : kernels::WeightFormat::plain);
    prepared.logical = Reservation(allocator, Category::parameters, bytes);
    prepared.padding =
        Reservation(allocator, Category::scratch, std::max<std::int64_t>(0, prepared.weight->packed_bytes() - bytes));
    return prepared;
}

tensor::ConstView ParameterStore::plain(int stored, int layer) const {
    const plan::StoredTensor& tensor = plan_.stored[static_cast<std::size_t>(stored)];
    const std::vector<Buffer>& instances = plain_[static_cast<std::size_t>(stored)];
    if (instances.empty()) {
        return {nullptr, tensor.dtype, tensor.local_shape};
    }
    return instances[instance_of(tensor, layer)].view(tensor.dtype, tensor.local_shape);
}

std::vector<const kernels::Weight*> ParameterStore::prepared(const plan::BlockPlan& block, const LinearStep& linear,
                                                             int layer) const {
    const Group group = stored_weights(block, linear);
    const auto found = group.empty() ? prepared_.end() : prepared_.find(group);
    std::vector<const kernels::Weight*> weights;
    if (found != prepared_.end()) {
        const plan::StoredTensor& first = plan_.stored[static_cast<std::size_t>(group.front())];
        for (const Prepared& part : found->second[instance_of(first, layer)]) {
            weights.push_back(part.weight.get());
        }
    }
    return weights;
}

}  // namespace shardplan::exec
