#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

#include "base/checked.h"
#include "model/graph.h"
#include "model/layer_builder.h"
#include "model/rope.h"

namespace shardplan::model {
namespace {

/// As a parameter of that dtype holds it: gemma multiplies by a tensor, not by a number.
double rounded(double value, tensor::DType dtype) {
    const auto single = static_cast<float>(value);
    return dtype == tensor::DType::bf16 ? tensor::float_from_bf16(tensor::bf16_from_float(single))
                                        : static_cast<double>(single);
}

std::int64_t embedding_width(const ModelSpec& model) {
    return model.embedding_width == 0 ? model.hidden : model.embedding_width;
}

Parameter token_table(const ModelSpec& model) {
    Parameter table;
    table.name = model.names.embedding + ".weight";
    table.kind = ParameterKind::embedding;
    table.parallel = ParallelDim::vocab;
    table.shape = {model.vocab_rows(), embedding_width(model)};
    table.stored_shape = {model.vocab, embedding_width(model)};
    table.padding = model.vocab_rows() - model.vocab;
    return table;
}

LinearSpec replicated(const char* op, const std::string& tensor, std::int64_t in, std::int64_t out, TensorRole role) {
    LinearSpec spec;
    spec.op = op;
    spec.tensor = tensor;
    spec.kind = ParameterKind::replicated_linear;
    spec.in = in;
    spec.out = out;
    spec.role = role;
    return spec;
}

TensorId add_positions(BlockBuilder& b, TensorId x, const ModelSpec& model) {
    Parameter table;
    table.name = model.names.position_embedding + ".weight";
    table.kind = ParameterKind::position_embedding;
    table.shape = {model.position_rows, model.hidden};
    table.stored_shape = table.shape;
    OpAttributes attributes;
    attributes.position_offset = model.position_offset;
    const tensor::Shape shape = b.shape(x);
    const TensorId positions =
        b.apply(OpKind::position_embedding, "position_embedding", Slot::embedding, {x, b.parameter(std::move(table))},
                {"positions", TensorRole::hidden, shape}, attributes);
    return b.add(x, positions, "add_positions", TensorRole::hidden);
}

Block build_embedding(const ModelSpec& model, const Workload& workload, std::vector<Parameter>& parameters) {
    BlockBuilder b("embedding", workload, parameters);
    const TensorId ids = b.input("token_ids", TensorKind::input, TensorRole::token_ids,
                                 {workload.batch_size, workload.query_length()}, tensor::DType::i32);
    const std::int64_t width = embedding_width(model);
    const TensorRole role = width == model.hidden ? TensorRole::hidden : TensorRole::free;
    TensorId x = b.apply(OpKind::embedding, "embedding", Slot::embedding, {ids, b.parameter(token_table(model))},
                         {"embedding.out", role, {workload.batch_size, workload.query_length(), width}});
    if (model.embedding_scale != 1.0) {
        x = b.scale(x, "embedding_scale", rounded(model.embedding_scale, workload.dtype), role);
    }
    if (width != model.hidden) {
        x = b.linear(x, replicated("project_in", model.names.project_in, width, model.hidden, TensorRole::hidden));
    }
    if (model.position_rows > 0) {
        x = add_positions(b, x, model);
    }
    if (!model.names.embedding_norm.empty()) {
        x = b.norm(x, "embedding_norm", Slot::none, model.norm, model.names.embedding_norm, TensorRole::hidden);
    }
    return b.take(std::nullopt, x, {});
}

/// A few outputs per token are replicated: cutting them would save nothing.
TensorId apply_score(BlockBuilder& b, TensorId x, const ModelSpec& model) {
    LinearSpec spec = replicated("score", model.names.lm_head, embedding_width(model), model.scores, TensorRole::free);
    spec.slot = Slot::lm_head;
    x = b.linear(x, spec);
    return model.lm_head_bias ? b.bias(x, spec, TensorRole::free) : x;
}

TensorId apply_lm_head(BlockBuilder& b, TensorId x, const ModelSpec& model) {
    LinearSpec spec;
    spec.op = "lm_head";
    spec.tensor = model.names.lm_head;
    spec.slot = Slot::lm_head;
    spec.parallel = ParallelDim::vocab;
    spec.in = embedding_width(model);
    spec.out = model.vocab_rows();
    spec.padding = model.vocab_rows() - model.vocab;
    spec.role = TensorRole::logits;
    if (!model.tied_embeddings) {
        x = b.linear(x, spec);
        return model.lm_head_bias ? b.bias(x, spec, TensorRole::logits) : x;
    }
    const TensorId table = b.parameter(token_table(model));
    const tensor::Shape shape = {b.shape(x)[0], b.shape(x)[1], model.vocab_rows()};
    x = b.apply(OpKind::linear, spec.op, spec.slot, {x, table}, {"lm_head.out", TensorRole::logits, shape});
    return model.lm_head_bias ? b.bias(x, spec, TensorRole::logits) : x;
}

Block build_head(const ModelSpec& model, const Workload& workload, std::vector<Parameter>& parameters) {
    BlockBuilder b("head", workload, parameters);
    const TensorId input = b.input("input", TensorKind::activation, TensorRole::hidden,
                                   {workload.batch_size, workload.query_length(), model.hidden}, workload.dtype);
    TensorId x = input;
    if (model.final_norm) {
        x = b.norm(x, "final_norm", Slot::final_norm, model.norm, model.names.final_norm);
    }
    if (embedding_width(model) != model.hidden) {
        x = b.linear(x, replicated("project_out", model.names.project_out, model.hidden, embedding_width(model),
                                   TensorRole::free));
    }
    x = model.scores > 0 ? apply_score(b, x, model) : apply_lm_head(b, x, model);
    if (model.logit_scale != 1.0) {
        x = b.scale(x, "logit_scale", model.logit_scale, TensorRole::logits);
    }
    if (model.logit_softcap > 0.0) {
        OpAttributes attributes;
        attributes.limit = model.logit_softcap;
        const tensor::Shape shape = b.shape(x);
        x = b.apply(OpKind::softcap, "logit_softcap", Slot::none, {x}, {"logits", TensorRole::logits, shape},
                    attributes);
    }
    return b.take(input, x, {});
}

std::string block_name(const LayerSpec& layer, const std::vector<Block>& blocks) {
    std::string name = "layer";
    name += layer.sliding_window > 0 ? ".sliding" : "";
    name += layer.chunk > 0 ? ".chunked" : "";
    name += layer.rope ? "" : ".nope";
    name += layer.local_rope && layer.sliding_window == 0 ? ".local" : "";
    name += layer.moe ? ".moe" : "";
    const auto same = std::count_if(blocks.begin(), blocks.end(),
                                    [&](const Block& b) { return b.name == name || b.name.starts_with(name + "#"); });
    return same == 0 ? name : fmt::format("{}#{}", name, same + 1);
}

void append_layers(Graph& graph, bool absorb) {
    const std::vector<LayerSpec>& layers = graph.model.layers;
    const std::size_t first_block = graph.blocks.size();
    std::vector<LayerSpec> kinds;
    std::vector<std::vector<int>> members;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        const auto kind = std::find(kinds.begin(), kinds.end(), layers[i]);
        const auto index = static_cast<std::size_t>(kind - kinds.begin());
        if (kind == kinds.end()) {
            kinds.push_back(layers[i]);
            members.emplace_back();
        }
        members[index].push_back(static_cast<int>(i));
        graph.sequence.push_back({static_cast<int>(first_block + index), static_cast<int>(i)});
    }
    for (std::size_t k = 0; k < kinds.size(); ++k) {
        graph.blocks.push_back(build_layer(graph.model, kinds[k], block_name(kinds[k], graph.blocks),
                                           std::move(members[k]), graph.workload, absorb, graph.parameters));
    }
}

}  // namespace

Graph build_graph(const ModelSpec& model, const Workload& workload, bool absorb) {
    Graph graph;
    graph.model = model;
    graph.workload = workload;
    const std::int64_t positions = workload.positions();
    graph.model.attention.rope = rope_for_positions(model.attention.rope, positions);
    graph.model.attention.local_rope = rope_for_positions(model.attention.local_rope, positions);
    graph.blocks.push_back(build_embedding(graph.model, graph.workload, graph.parameters));
    graph.sequence.push_back({0, -1});
    append_layers(graph, absorb);
    graph.blocks.push_back(build_head(graph.model, graph.workload, graph.parameters));
    graph.sequence.push_back({static_cast<int>(graph.blocks.size()) - 1, -1});
    return graph;
}

}  // namespace shardplan::model
