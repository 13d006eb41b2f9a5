#include "exec/expert_steps.h"

#include "kernels/dispatch.h"

namespace shardplan::exec {
namespace {

using kernels::ConstView;
using kernels::View;
using plan::ComputeStep;

kernels::RouteParams route_params(const model::RoutingSpec& routing) {
    kernels::RouteParams params;
    params.top_k = routing.top_k;
    switch (routing.score) {
        case model::RouterScore::softmax: params.score = kernels::RouterScore::softmax; break;
        case model::RouterScore::top_softmax: params.score = kernels::RouterScore::top_softmax; break;
        case model::RouterScore::sigmoid: params.score = kernels::RouterScore::sigmoid; break;
        case model::RouterScore::sparse_mixer: params.score = kernels::RouterScore::sparse_mixer; break;
    }
    params.normalise = routing.normalise;
    params.scale = routing.scale;
    params.jitter = routing.jitter;
    params.groups = routing.groups;
    params.group_top_k = routing.group_top_k;
    params.group_score = routing.group_score == model::GroupScore::maximum ? kernels::GroupScore::maximum
                                                                           : kernels::GroupScore::top_two_sum;
    return params;
}

kernels::ExpertParams expert_params(const ComputeStep& step, const model::Op& op) {
    const auto order = [](bool transposed) {
        return transposed ? kernels::WeightOrder::in_out : kernels::WeightOrder::out_in;
    };
    kernels::ExpertParams params;
    params.activation = activation_of(op);
    params.gate_up_order = order(op.attributes.transposed);
    params.down_order = order(op.attributes.transposed_down);
    params.swiglu_limit = static_cast<float>(op.attributes.swiglu_limit);
    params.scale_input = op.attributes.routing.scale_input;
    params.grouped = step.grouped;
    return params;
}

/// The weights among the step's inputs, from `first` on.
kernels::ExpertWeights expert_weights(const BlockScene& scene, const ComputeStep& step, const model::Op& op,
                                      std::size_t first) {
    const auto in = [&](std::size_t i) { return ConstView(scene.view(step.inputs.at(first + i))); };
    kernels::ExpertWeights weights{in(0), in(1), in(2), {}, {}, {}};
    if (op.attributes.biased) {
        weights.gate_bias = in(3);
        weights.up_bias = in(4);
        // The results of all parts of the intermediate dimension are added up: the first part brings the bias.
        const std::size_t dim = op.attributes.transposed ? 2 : 1;
        weights.down_bias = scene.range(step.inputs[first], dim).begin == 0 ? in(5) : ConstView{};
    }
    return weights;
}

/// The first rows of a matrix.
View leading_rows(const View& matrix, std::int64_t rows) {
    View part = matrix;
    part.shape[0] = rows;
    return part;
}

}  // namespace

void run_route(const BlockScene& scene, const ComputeStep& step, const model::Op& op) {
    const ConstView correction = step.inputs.size() > 1 ? ConstView(scene.view(step.inputs[1])) : ConstView{};
    scene.kernels.route(scene.view(step.inputs[0]), correction, route_params(op.attributes.routing),
                        scene.view(step.outputs[0]));
}

void run_experts(const BlockScene& scene, const ComputeStep& step, const model::Op& op) {
    scene.kernels.experts(scene.view(step.inputs[0]), scene.view(step.inputs[1]), expert_weights(scene, step, op, 2),
                          expert_params(step, op), scene.view(step.outputs[0]));
}

void run_dispatched_experts(const BlockScene& scene, const ComputeStep& step, const model::Op& op) {
    const std::int64_t rows = kernels::row_count(scene.view(step.inputs[2]));
    scene.kernels.experts(leading_rows(scene.view(step.inputs[0]), rows),
                          leading_rows(scene.view(step.inputs[1]), rows), expert_weights(scene, step, op, 3),
                          expert_params(step, op), leading_rows(scene.view(step.outputs[0]), rows));
}

void run_dispatch_tokens(const BlockScene& scene, const ComputeStep& step, const StepSchedule& schedule) {
    const auto out = [&](std::size_t i) { return scene.view(step.outputs.at(i)); };
    kernels::dispatch_tokens(scene.view(step.inputs[0]), scene.view(step.inputs[1]), schedule.experts,
                             {out(0), out(1), out(2), out(3)});
}

void run_combine_tokens(const BlockScene& scene, const ComputeStep& step) {
    kernels::combine_tokens(scene.view(step.inputs[0]), scene.view(step.inputs[1]), scene.view(step.inputs[2]),
                            scene.view(step.outputs[0]));
}

std::vector<base::Interval> experts_of_members(const plan::Plan& plan, const model::Block& graph,
                                               const ComputeStep& step, std::int64_t rank) {
    std::vector<base::Interval> experts;
    if (step.kind != plan::ComputeKind::dispatch_tokens) {
        return experts;
    }
    const mesh::Mesh& mesh = plan.mesh.refined();
    const model::Op& op = graph.ops[static_cast<std::size_t>(step.op)];
    const std::int64_t all = graph.tensors[static_cast<std::size_t>(op.inputs[1])].shape.back();
    const std::int64_t each = all / mesh.size(step.expert_axes);
    for (const std::int64_t member : mesh.group(rank, step.axes)) {
        const std::int64_t first = mesh.position(member, step.expert_axes) * each;
        experts.push_back({first, first + each});
    }
    return experts;
}

}  // namespace shardplan::exec
