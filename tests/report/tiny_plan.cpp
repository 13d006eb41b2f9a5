#include "report/tiny_plan.h"

namespace report_tests {

using namespace shardplan;
using mesh::CollectiveKind;
using partition::PartitionSpec;
using plan::BlockPlan;
using plan::Plan;
using plan::ValueKind;

namespace {

partition::Layout layout_of(const plan::RefinedMesh& mesh, const PartitionSpec& spec) {
    auto layout = partition::Layout::replicated(static_cast<int>(spec.entries.size()));
    for (int d = 0; d < layout.rank; ++d) {
        layout[d] = mesh.refine(spec.entries[static_cast<std::size_t>(d)]);
    }
    return layout;
}

plan::StoredTensor stored(const Plan& plan, const std::string& name, const std::string& role,
                          const std::vector<int>& layers, const tensor::Shape& shape, const PartitionSpec& spec,
                          const std::string& reason) {
    plan::StoredTensor tensor;
    tensor.kind = role == "cache" ? plan::StoredKind::cache : plan::StoredKind::parameter;
    tensor.name = name;
    tensor.role = role;
    tensor.layers = layers;
    tensor.shape = shape;
    tensor.spec = spec;
    tensor.layout = layout_of(plan.mesh, spec);
    tensor.local_shape = partition::local_shape(tensor.layout, shape, plan.mesh.refined());
    tensor.bytes = tensor::byte_count(shape, tensor.dtype);
    tensor.bytes_per_device = tensor::byte_count(tensor.local_shape, tensor.dtype);
    tensor.replicas = tensor.bytes_per_device * plan.mesh.refined().device_count() / tensor.bytes;
    tensor.reason = reason;
    return tensor;
}

plan::ValueId add_value(const Plan& plan, BlockPlan& block, ValueKind kind, const std::string& name,
                        const tensor::Shape& shape, const PartitionSpec& spec,
                        tensor::DType dtype = tensor::DType::bf16) {
    plan::Value value;
    value.kind = kind;
    value.name = name;
    value.shape = shape;
    value.dtype = dtype;
    value.layout = layout_of(plan.mesh, spec);
    value.local_shape = partition::local_shape(value.layout, shape, plan.mesh.refined());
    value.local_bytes = tensor::byte_count(value.local_shape, dtype);
    block.values.push_back(value);
    return static_cast<plan::ValueId>(block.values.size()) - 1;
}

void add_compute(Plan& plan, BlockPlan& block, const std::string& op, const std::string& module,
                 const std::vector<plan::ValueId>& inputs, plan::ValueId output) {
    std::vector<model::Op>& ops = plan.graph.blocks[static_cast<std::size_t>(block.block)].ops;
    plan::ComputeStep step;
    step.op = static_cast<int>(ops.size());
    step.module = module;
    step.inputs = inputs;
    step.outputs = {output};
    step.flops = 1024.0;
    ops.emplace_back();
    ops.back().name = op;
    block.steps.push_back({step, std::nullopt, {inputs[0]}});
}

void add_collective(const Plan& plan, BlockPlan& block, CollectiveKind kind, const std::string& axis,
                    plan::ValueId input, plan::ValueId output, std::int64_t payload, std::int64_t wire) {
    plan::CollectiveStep step;
    step.kind = kind;
    step.axes = plan.mesh.refine({axis});
    step.names = {axis};
    step.dim = 2;
    step.input = input;
    step.output = output;
    step.group_size = plan.mesh.refined().size(step.axes);
    step.payload_bytes = payload;
    step.wire_bytes = wire;
    step.wire_bytes_total = wire * plan.mesh.refined().device_count();
    step.reason = "for the op behind it";
    block.steps.push_back({std::nullopt, step, {input}});
}

BlockPlan embedding(Plan& plan) {
    BlockPlan block;
    block.block = 0;
    block.name = "embedding";
    const auto ids = add_value(plan, block, ValueKind::input, "token_ids", {4, 8}, {{{"dp"}, {}}}, tensor::DType::i32);
    const auto table = add_value(plan, block, ValueKind::parameter, "table", {64, 32}, {{{}, {"tp"}}});
    const auto hidden = add_value(plan, block, ValueKind::activation, "hidden", {4, 8, 32}, {{{"dp"}, {}, {"tp"}}});
    add_compute(plan, block, "embedding", "VocabParallelEmbedding", {ids, table}, hidden);
    block.output = hidden;
    block.peak_activation_bytes = 384;
    block.arena_bytes = 384;
    return block;
}

BlockPlan layer(Plan& plan) {
    BlockPlan block;
    block.block = 1;
    block.name = "layer";
    block.layers = {0, 1, 2, 3};
    const auto x = add_value(plan, block, ValueKind::input, "hidden", {4, 8, 32}, {{{"dp"}, {}, {"tp"}}});
    const auto all = add_value(plan, block, ValueKind::activation, "hidden", {4, 8, 32}, {{{"dp"}, {}, {}}});
    const auto w = add_value(plan, block, ValueKind::parameter, "up_proj.weight", {64, 32}, {{{"tp"}, {}}});
    const auto up = add_value(plan, block, ValueKind::activation, "up", {4, 8, 64}, {{{"dp"}, {}, {"tp"}}});
    const auto v = add_value(plan, block, ValueKind::parameter, "down_proj.weight", {32, 64}, {{{}, {"tp"}}});
    const auto sum = add_value(plan, block, ValueKind::activation, "down", {4, 8, 32}, {{{"dp"}, {}, {}}});
    block.values[static_cast<std::size_t>(sum)].layout.pending = plan.mesh.refine({"tp"}).set();
    const auto y = add_value(plan, block, ValueKind::activation, "down", {4, 8, 32}, {{{"dp"}, {}, {"tp"}}});
    add_collective(plan, block, CollectiveKind::all_gather, "tp", x, all, 256, 768);
    add_compute(plan, block, "up_proj", "ColumnParallelLinear", {all, w}, up);
    add_compute(plan, block, "down_proj", "RowParallelLinear", {up, v}, sum);
    add_collective(plan, block, CollectiveKind::reduce_scatter, "tp", sum, y, 1024, 768);
    block.input = x;
    block.output = y;
    block.peak_activation_bytes = 2560;
    block.peak_communication_bytes = 1024;
    block.arena_bytes = 3584;
    block.weight_uses = {{"up_proj", true, 1024, 2048}, {"down_proj", false, 512, -1}};
    return block;
}

model::ModelSpec tiny_model() {
    model::ModelSpec model;
    model.family = "llama";
    model.model_type = "llama";
    model.hidden = 32;
    model.vocab = 64;
    model.attention.heads = 4;
    model.attention.kv_heads = 2;
    model.attention.head_dim = 8;
    model.mlp.intermediate = 64;
    model.layers.resize(4);
    return model;
}

}  // namespace

Plan tiny_plan() {
    Plan plan;
    plan.job.name = "tiny";
    plan.job.model = tiny_model();
    plan.job.mesh = mesh::Mesh({{"dp", 2}, {"tp", 4}});
    plan.job.workload.batch_size = 4;
    plan.job.workload.sequence_length = 8;
    plan.graph.model = plan.job.model;
    plan.graph.blocks.resize(2);
    plan.mesh = plan::RefinedMesh(plan.job.mesh, {{"tp", {2}}});
    plan.provider.reasons = {"inference: is for decode", "fused: heads are too few"};
    const std::vector<int> layers{0, 1, 2, 3};
    plan.stored = {
        stored(plan, "model.embed_tokens.weight", "embedding", {-1}, {64, 32}, {{{}, {"tp"}}}, "vocab_axis"),
        stored(plan, "model.layers.{}.self_attn.qkv_proj.weight", "column", layers, {32, 32}, {{{"tp"}, {"dp"}}},
               "head_axis"),
        stored(plan, "model.layers.{}.mlp.up_proj.weight", "column", layers, {64, 32}, {{{"tp"}, {}}},
               "mlp_intermediate_axis"),
        stored(plan, "model.layers.{}.mlp.down_proj.weight", "row", layers, {32, 64}, {{{}, {"tp"}}},
               "mlp_intermediate_axis"),
        stored(plan, "layers.{}.cache.k", "cache", layers, {4, 16, 2, 8}, {{{"dp"}, {}, {}, {}}}, "key_sequence_axis")};
    plan.stored[1].part = "q";
    plan.activations = {{"hidden", {{{"dp"}, {}, {"tp"}}}, "batch_axis, hidden_state_axis"}};
    plan.blocks = {embedding(plan), layer(plan)};
    plan.sequence = {{0, -1}, {1, 0}, {1, 1}, {1, 2}, {1, 3}};
    plan.collectives = {{CollectiveKind::all_gather, {"tp"}, 4, 1024, 3072, 24576},
                        {CollectiveKind::reduce_scatter, {"tp"}, 4, 4096, 3072, 24576}};
    plan.memory = {10240, 2048, 3584, 2560, 1024};
    plan.stages = {{0, static_cast<int>(plan.sequence.size()), 0, 2, plan.memory, 1.5e6, 0}};
    plan.totals = {22528, 45056, 1.5e6, 0.25};
    plan.notes = {"axis 'sp' is not in the mesh: counted as 1"};
    return plan;
}

Plan plan_of_tensor(const std::vector<mesh::Axis>& axes, const tensor::Shape& shape, const PartitionSpec& spec) {
    Plan plan;
    plan.job.mesh = mesh::Mesh(axes);
    plan.mesh = plan::RefinedMesh(plan.job.mesh, {});
    plan.stored = {stored(plan, "w", "column", {-1}, shape, spec, "")};
    plan.stages.emplace_back();
    return plan;
}

}  // namespace report_tests
