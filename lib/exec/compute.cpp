#include "exec/compute.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <stdexcept>

#include "exec/expert_steps.h"
#include "exec/linear_call.h"

namespace shardplan::exec {
namespace {

using kernels::ConstView;
using kernels::View;
using plan::ComputeStep;
using plan::ValueId;

/// Tokens of one local sequence of a value [b, s, ...] that follow each other.
struct Piece {
    std::int64_t row = 0;  ///< local sequence
    base::Run tokens;      ///< from the local token `first` on, at their positions
};

std::vector<Piece> pieces_of(const BlockScene& scene, ValueId value) {
    std::vector<Piece> result;
    const base::Interval batch = scene.range(value, 0);
    for (std::int64_t b = batch.begin; b < batch.end; ++b) {
        for (base::Run run : scene.plan.token_order.runs(scene.range(value, 1))) {
            run.position += scene.first_positions[static_cast<std::size_t>(b)];
            result.push_back({b - batch.begin, run});
        }
    }
    return result;
}

/// Tokens [first, first + count) of local sequence `row`, as a tensor [1, count, ...].
View part_of(const View& x, std::int64_t row, std::int64_t first, std::int64_t count) {
    View part{nullptr, x.dtype, x.shape};
    part.shape[0] = 1;
    part.shape[1] = 1;
    part.data = x.data + (row * x.shape[1] + first) * part.bytes();
    part.shape[1] = count;
    return part;
}

/// Positions of the local tokens of a value [b, s, ...], sequence by sequence.
std::vector<std::int64_t> token_positions(const BlockScene& scene, ValueId value) {
    std::vector<std::int64_t> positions;
    for (const auto& [row, tokens] : pieces_of(scene, value)) {
        for (std::int64_t t = 0; t < tokens.count; ++t) {
            positions.push_back(tokens.position + t);
        }
    }
    return positions;
}

/// Position of the first local token of each local sequence of a value [b, s, ...]; the others follow it.
/// @pre the plan's order of tokens is plain
std::vector<std::int64_t> token_starts(const BlockScene& scene, ValueId value) {
    if (!scene.plan.token_order.plain()) {
        throw std::logic_error("the tokens do not lie in order");
    }
    std::vector<std::int64_t> starts;
    const base::Interval batch = scene.range(value, 0);
    for (std::int64_t b = batch.begin; b < batch.end; ++b) {
        starts.push_back(scene.first_positions[static_cast<std::size_t>(b)] + scene.range(value, 1).begin);
    }
    return starts;
}

const tensor::Shape& graph_shape(const BlockScene& scene, model::TensorId tensor) {
    return scene.graph.tensors[static_cast<std::size_t>(tensor)].shape;
}

kernels::NormParams norm_params(const model::NormSpec& norm) {
    return {norm.kind == model::NormKind::rms ? kernels::NormKind::rms : kernels::NormKind::layer, norm.eps,
            static_cast<float>(norm.weight_offset)};
}

/// Weight and bias of a norm, the inputs from `first` on; absent ones are empty views.
std::pair<ConstView, ConstView> norm_operands(const BlockScene& scene, const ComputeStep& step,
                                              const model::NormSpec& norm, std::size_t first) {
    std::pair<ConstView, ConstView> operands;
    if (norm.has_weight) {
        operands.first = scene.view(step.inputs.at(first++));
    }
    if (norm.has_bias) {
        operands.second = scene.view(step.inputs.at(first));
    }
    return operands;
}

std::vector<float> as_floats(const ConstView& x) {
    std::vector<float> values(static_cast<std::size_t>(x.count()));
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] =
            x.dtype == tensor::DType::f32 ? x.as<float>()[i] : tensor::float_from_bf16(x.as<std::uint16_t>()[i]);
    }
    return values;
}

/// What attention needs beside its tensors; keeps what AttentionParams borrows.
struct AttentionCall {
    std::vector<std::int64_t> q_start;
    std::vector<std::int64_t> k_valid;
    std::vector<float> sinks;
    std::vector<base::Run> q_runs;
    std::vector<base::Run> k_runs;
    kernels::AttentionParams params;
};

/// The slots of the local keys: in a ring those of the device that many positions before this one.
base::Interval key_slots(const BlockScene& scene, const ComputeStep& step) {
    if (step.key_shift == 0) {
        return scene.range(step.inputs[1], 1);
    }
    const plan::Value& keys = scene.block.values[static_cast<std::size_t>(step.inputs[1])];
    const mesh::Mesh& mesh = scene.plan.mesh.refined();
    const mesh::AxisList& axes = keys.layout[1];
    const std::int64_t n = mesh.size(axes);
    const std::int64_t position = mesh.position(scene.rank, axes) + n - (step.key_shift + scene.pass) % n;
    return partition::local_ranges(keys.layout, keys.shape, mesh, mesh.rank_at(scene.rank, axes, position % n))[1];
}

/// Positions of queries and keys in the order that the plan gives the tokens.
void place_rows(const BlockScene& scene, const ComputeStep& step, AttentionCall& call) {
    const base::Interval queries = scene.range(step.inputs[0], 1);
    const base::Interval keys = key_slots(scene, step);
    if (scene.plan.token_order.plain()) {
        for (std::int64_t& start : call.q_start) {
            start += queries.begin;
        }
        call.params.k_start = keys.begin;
        return;
    }
    call.q_runs = scene.plan.token_order.runs(queries);
    call.k_runs = scene.plan.token_order.runs(keys);
    call.params.q_runs = call.q_runs;
    call.params.k_runs = call.k_runs;
}

/// Sinks count once: where sums are added over cut keys with the first part of the keys, in a ring with the own ones.
bool has_sinks(const BlockScene& scene, const ComputeStep& step) {
    if (step.kind == plan::ComputeKind::attention_accumulate) {
        return false;
    }
    const plan::Value& output = scene.block.values[static_cast<std::size_t>(step.outputs[0])];
    return output.layout.pending.empty() || scene.range(step.inputs[1], 1).begin == 0;
}

/// Without a cache, positions are counted from the first token of the step; with one, from that of the sequence.
AttentionCall attention_call(const BlockScene& scene, const ComputeStep& step, const model::Op& op) {
    const model::AttentionSpec& spec = scene.plan.graph.model.attention;
    const ValueId q = step.inputs[0];
    const ValueId k = step.inputs[1];
    const std::int64_t tokens = scene.block.values[static_cast<std::size_t>(q)].shape[1];
    const base::Interval batch = scene.range(q, 0);
    AttentionCall call;
    for (std::int64_t b = batch.begin; b < batch.end; ++b) {
        const std::int64_t first = op.attributes.from_cache ? scene.first_positions[static_cast<std::size_t>(b)] : 0;
        call.q_start.push_back(first);
        call.k_valid.push_back(first + tokens);
    }
    kernels::AttentionParams& params = call.params;
    params.scale = static_cast<float>(op.attributes.attention_scale);
    params.softcap = static_cast<float>(op.attributes.attention_softcap);
    params.window = op.attributes.window;
    params.chunk = op.attributes.chunk;
    place_rows(scene, step, call);
    params.q_head_start = scene.range(q, 2).begin;
    params.kv_head_start = scene.range(k, 2).begin;
    params.queries_per_kv = op.attributes.heads / op.attributes.kv_heads;
    params.value_dim = step.inputs.size() > 2 ? 0 : graph_shape(scene, op.output).back();
    if (spec.alibi) {
        const base::Interval heads = scene.range(q, 2);
        params.alibi_slopes =
            std::span(spec.alibi_slopes)
                .subspan(static_cast<std::size_t>(heads.begin), static_cast<std::size_t>(heads.size()));
        params.alibi_in_bf16 = spec.alibi_bf16;
    }
    if (op.attributes.sinks && has_sinks(scene, step)) {
        call.sinks = as_floats(scene.view(step.inputs.back()));
        params.sinks = call.sinks;
    }
    params.q_start = call.q_start;
    params.k_valid = call.k_valid;
    return call;
}

void run_attention(const BlockScene& scene, const ComputeStep& step, const model::Op& op) {
    const AttentionCall call = attention_call(scene, step, op);
    const View& q = scene.view(step.inputs[0]);
    const View& k = scene.view(step.inputs[1]);
    const View& v = step.inputs.size() > 2 ? scene.view(step.inputs[2]) : k;
    if (step.kind == plan::ComputeKind::attention_partial) {
        scene.kernels.attention_partial(q, k, v, call.params, scene.view(step.outputs[0]), scene.view(step.outputs[1]),
                                        scene.view(step.outputs[2]));
    } else if (step.kind == plan::ComputeKind::attention_accumulate) {
        scene.kernels.attention_accumulate(q, k, v, call.params, scene.view(step.outputs[0]),
                                           scene.view(step.outputs[1]), scene.view(step.outputs[2]));
    } else {
        scene.kernels.attention(q, k, v, call.params, scene.view(step.outputs[0]));
    }
}

void run_rope(const BlockScene& scene, const ComputeStep& step, const model::Op& op) {
    const model::AttentionSpec& spec = scene.plan.graph.model.attention;
    const model::RopeSpec& rope = op.attributes.local_rope ? spec.local_rope : spec.rope;
    const kernels::RopeParams params{rope.rotary_dim, rope.interleaved, rope.inverse_frequencies,
                                     static_cast<float>(rope.attention_factor), op.attributes.first};
    const View& x = scene.view(step.inputs[0]);
    const View& y = scene.view(step.outputs[0]);
    if (scene.plan.token_order.plain()) {
        return scene.kernels.rope(x, token_starts(scene, step.inputs[0]), params, y);
    }
    for (const auto& [row, tokens] : pieces_of(scene, step.inputs[0])) {
        scene.kernels.rope(part_of(x, row, tokens.first, tokens.count), {&tokens.position, 1}, params,
                           part_of(y, row, tokens.first, tokens.count));
    }
}

/// Looks up the rows of the tokens' positions: ids that are positions.
void run_position_embedding(const BlockScene& scene, const ComputeStep& step, const model::Op& op) {
    const View& y = scene.view(step.outputs[0]);
    std::vector<std::int32_t> rows;
    for (const std::int64_t position : token_positions(scene, step.outputs[0])) {
        rows.push_back(static_cast<std::int32_t>(position + op.attributes.position_offset));
    }
    const ConstView ids{reinterpret_cast<const std::byte*>(rows.data()), tensor::DType::i32, {y.shape[0], y.shape[1]}};
    scene.kernels.embedding(ids, scene.view(step.inputs[1]), scene.range(step.inputs[1], 0).begin, 1.0F, y);
}

void run_cache_write(const BlockScene& scene, const ComputeStep& step) {
    const ValueId fresh = step.inputs[0];
    const ValueId cache = step.outputs[0];
    if (scene.range(fresh, 0) != scene.range(cache, 0) || scene.range(fresh, 2) != scene.range(cache, 2)) {
        throw std::logic_error("cache_write: new rows and cache have other sequences or heads");
    }
    const View& x = scene.view(fresh);
    const View& y = scene.view(cache);
    const std::int64_t start = scene.range(cache, 1).begin;
    if (scene.plan.token_order.plain()) {
        return scene.kernels.write_cache(x, token_starts(scene, fresh), start, y);
    }
    for (const auto& [row, tokens] : pieces_of(scene, fresh)) {
        scene.kernels.write_cache(part_of(x, row, tokens.first, tokens.count), {&tokens.position, 1}, start,
                                  part_of(y, row, 0, y.shape[1]));
    }
}

void copy_if_moved(const View& from, const View& to) {
    if (from.data != to.data && from.bytes() > 0) {
        std::memcpy(to.data, from.data, static_cast<std::size_t>(from.bytes()));
    }
}

void run_norm(const BlockScene& scene, const ComputeStep& step, const model::Op& op) {
    const auto [weight, bias] = norm_operands(scene, step, op.attributes.norm, 1);
    scene.kernels.norm(scene.view(step.inputs[0]), weight, bias, norm_params(op.attributes.norm),
                       scene.view(step.outputs[0]));
}

void run_norm_apply(const BlockScene& scene, const ComputeStep& step, const model::Op& op) {
    const auto [weight, bias] = norm_operands(scene, step, op.attributes.norm, 2);
    const std::int64_t size = scene.block.values[static_cast<std::size_t>(step.inputs[0])].shape.back();
    scene.kernels.norm_apply(scene.view(step.inputs[0]), scene.view(step.inputs[1]), size, weight, bias,
                             norm_params(op.attributes.norm), scene.view(step.outputs[0]));
}

void run_linear(const BlockScene& scene, const LinearStep& linear) {
    LinearCall call{
        scene.kernels, scene.scratch, scene.view(linear.x), {}, {}, {}, scene.prepared, linear.transposed, {}};
    if (linear.norm != nullptr) {
        call.norm = norm_params(linear.norm->attributes.norm);
        call.norm_weight = linear.norm_weight < 0 ? ConstView{} : scene.view(linear.norm_weight);
        call.norm_bias = linear.norm_bias < 0 ? ConstView{} : scene.view(linear.norm_bias);
    }
    for (const LinearPart& part : linear.parts) {
        call.parts.push_back(
            {scene.view(part.weight), part.bias < 0 ? ConstView{} : scene.view(part.bias), scene.view(part.output)});
    }
    call_linear(call);
}

/// Multiplies each query by the factor of its position.
void run_temperature(const BlockScene& scene, const ComputeStep& step) {
    const model::AttentionSpec& spec = scene.plan.graph.model.attention;
    const View& x = scene.view(step.inputs[0]);
    std::vector<float> factors;
    for (const auto& [row, tokens] : pieces_of(scene, step.inputs[0])) {
        for (std::int64_t t = 0; t < tokens.count; ++t) {
            const double place = static_cast<double>(tokens.position + t + 1);
            const double chunks = std::floor(place / spec.temperature_floor);
            factors.push_back(static_cast<float>(1.0 + spec.temperature_scale * std::log(chunks + 1.0)));
        }
    }
    scene.kernels.scale_rows(x, factors, scene.view(step.outputs[0]));
}

void run_head_linear(const BlockScene& scene, const ComputeStep& step, const model::Op& op) {
    const auto order = op.attributes.transposed ? kernels::WeightOrder::in_out : kernels::WeightOrder::out_in;
    scene.kernels.head_matmul(scene.view(step.inputs.at(0)), scene.view(step.inputs.at(1)), order,
                              scene.view(step.outputs[0]));
}

void run_op(const BlockScene& scene, const ComputeStep& step, const model::Op& op) {
    const kernels::Kernels& kernels = scene.kernels;
    const View& x = scene.view(step.inputs[0]);
    const View& y = scene.view(step.outputs[0]);
    const auto second = [&] { return scene.view(step.inputs.at(1)); };
    switch (op.kind) {
        case model::OpKind::embedding:
            return kernels.embedding(x, second(), scene.range(step.inputs[1], 0).begin,
                                     static_cast<float>(op.attributes.factor), y);
        case model::OpKind::position_embedding: return run_position_embedding(scene, step, op);
        case model::OpKind::norm: return run_norm(scene, step, op);
        case model::OpKind::bias_add: return kernels.add_bias(x, second(), y);
        case model::OpKind::split_heads:
        case model::OpKind::merge_heads: return copy_if_moved(x, y);
        case model::OpKind::rope: return run_rope(scene, step, op);
        case model::OpKind::attention: return run_attention(scene, step, op);
        case model::OpKind::cache_write: return run_cache_write(scene, step);
        case model::OpKind::add: return kernels.add(x, second(), y);
        case model::OpKind::glu: return kernels.glu(x, second(), activation_of(op), y);
        case model::OpKind::activation: return kernels.activate(x, activation_of(op), y);
        case model::OpKind::scale: return kernels.scale(x, static_cast<float>(op.attributes.factor), y);
        case model::OpKind::softcap: return kernels.softcap(x, static_cast<float>(op.attributes.limit), y);
        case model::OpKind::clip: return kernels.clip(x, static_cast<float>(op.attributes.limit), y);
        case model::OpKind::route: return run_route(scene, step, op);
        case model::OpKind::experts: return run_experts(scene, step, op);
        case model::OpKind::gate_rows: return kernels.gate_rows(x, second(), y);
        case model::OpKind::temperature: return run_temperature(scene, step);
        case model::OpKind::take: return kernels.take(x, op.attributes.first, y);
        case model::OpKind::join: return kernels.join(x, second(), y);
        case model::OpKind::head_linear: return run_head_linear(scene, step, op);
        case model::OpKind::linear: break;  // has a LinearStep
    }
    throw std::logic_error(fmt::format("{}: an op of kind {} cannot be run", op.name, model::to_string(op.kind)));
}

}  // namespace

kernels::Activation activation_of(const model::Op& op) {
    const auto activation = kernels::parse_activation(op.attributes.activation);
    if (!activation) {
        throw std::logic_error(fmt::format("{}: no kernel for activation {}", op.name, op.attributes.activation));
    }
    return *activation;
}

void run_compute(const BlockScene& scene, const ComputeStep& step, const StepSchedule& schedule) {
    if (schedule.linear) {
        return run_linear(scene, *schedule.linear);
    }
    const kernels::Kernels& kernels = scene.kernels;
    const auto in = [&](std::size_t i) { return scene.view(step.inputs.at(i)); };
    const auto out = [&](std::size_t i) { return scene.view(step.outputs.at(i)); };
    const model::Op& op = scene.graph.ops.at(static_cast<std::size_t>(step.op));
    switch (step.kind) {
        case plan::ComputeKind::op: return run_op(scene, step, op);
        case plan::ComputeKind::norm_statistics: return kernels.norm_statistics(in(0), out(0));
        case plan::ComputeKind::norm_apply: return run_norm_apply(scene, step, op);
        case plan::ComputeKind::attention_partial:
        case plan::ComputeKind::attention_accumulate: return run_attention(scene, step, op);
        case plan::ComputeKind::softmax_rescale: return kernels.softmax_rescale(in(0), in(1), in(2), out(0));
        case plan::ComputeKind::softmax_merge: return kernels.softmax_merge(in(0), in(1), in(2), in(3), out(0));
        case plan::ComputeKind::dispatch_tokens: return run_dispatch_tokens(scene, step, schedule);
        case plan::ComputeKind::dispatched_experts: return run_dispatched_experts(scene, step, op);
        case plan::ComputeKind::combine_tokens: return run_combine_tokens(scene, step);
        case plan::ComputeKind::fused_linear: break;  // has a LinearStep
    }
    throw std::logic_error(fmt::format("a step of kind {} cannot be run", plan::to_string(step.kind)));
}

}  // namespace shardplan::exec
