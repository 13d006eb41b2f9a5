#include "report/job_json.h"

#include <array>

#include "report/enum_text.h"

namespace shardplan::report {
namespace {

constexpr std::array semantics{partition::Semantic::batch,        partition::Semantic::length,
                               partition::Semantic::query_length, partition::Semantic::kv_length,
                               partition::Semantic::embed,        partition::Semantic::head,
                               partition::Semantic::kv_head,      partition::Semantic::mlp_intermediate,
                               partition::Semantic::vocab,        partition::Semantic::expert,
                               partition::Semantic::expert_gate,  partition::Semantic::head_dim,
                               partition::Semantic::kv_head_dim,  partition::Semantic::bias_head_seq,
                               partition::Semantic::bias_kv_seq,  partition::Semantic::weight_storage};

void write_norm(JsonWriter& json, std::string_view key, const model::NormSpec& norm) {
    json.object(
        key,
        [&] {
            json.field("kind", text_of(norm.kind));
            json.field("eps", norm.eps);
            json.field("weight_offset", norm.weight_offset);
            json.field("has_weight", norm.has_weight);
            json.field("has_bias", norm.has_bias);
        },
        JsonLayout::one_line);
}

void write_latent(JsonWriter& json, const model::LatentSpec& latent) {
    json.object("latent", [&] {
        json.field("kv_rank", latent.kv_rank);
        json.field("q_rank", latent.q_rank);
        json.field("nope_dim", latent.nope_dim);
        json.field("rope_dim", latent.rope_dim);
        json.field("value_dim", latent.value_dim);
        json.field("down_bias", latent.down_bias);
        write_norm(json, "norm", latent.norm);
    });
}

void write_attention(JsonWriter& json, const model::AttentionSpec& attention) {
    json.object("attention", [&] {
        json.field("heads", attention.heads);
        json.field("kv_heads", attention.kv_heads);
        json.field("head_dim", attention.head_dim);
        json.field("storage", text_of(attention.storage));
        json.list("biases", std::array{attention.q_bias, attention.k_bias, attention.v_bias, attention.out_bias});
        json.field("qk_norm", text_of(attention.qk_norm));
        write_norm(json, "qk_norm_spec", attention.qk_norm_spec);
        json.field("scale", attention.scale);
        json.field("logit_softcap", attention.logit_softcap);
        json.field("qkv_clip", attention.qkv_clip);
        json.object("rope", [&] {
            json.field("rotary_dim", attention.rope.rotary_dim);
            json.field("interleaved", attention.rope.interleaved);
            json.field("attention_factor", attention.rope.attention_factor);
            json.list("inverse_frequencies", attention.rope.inverse_frequencies);
        });
        if (attention.is_latent()) {
            write_latent(json, attention.latent);
        }
        json.field("alibi", attention.alibi);
        json.list("alibi_slopes", attention.alibi_slopes);
    });
}

void write_mlp(JsonWriter& json, const model::MlpSpec& mlp) {
    json.object("mlp", [&] {
        json.field("intermediate", mlp.intermediate);
        json.field("gated", mlp.gated);
        json.field("fused_gate_up", mlp.fused_gate_up);
        json.field("activation", mlp.activation);
        json.field("up_bias", mlp.up_bias);
        json.field("down_bias", mlp.down_bias);
    });
}

/// Layers with the same spec, as one object each.
void write_layers(JsonWriter& json, const std::vector<model::LayerSpec>& layers) {
    std::vector<model::LayerSpec> kinds;
    std::vector<std::vector<int>> members;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        std::size_t k = 0;
        while (k < kinds.size() && !(kinds[k] == layers[i])) {
            ++k;
        }
        if (k == kinds.size()) {
            kinds.push_back(layers[i]);
            members.emplace_back();
        }
        members[k].push_back(static_cast<int>(i));
    }
    std::size_t next = 0;
    json.array("layers", kinds, [&](const model::LayerSpec& kind) {
        json.object([&] {
            json.field("sliding_window", kind.sliding_window);
            json.field("rope", kind.rope);
            json.list("layers", members[next++]);
        });
    });
}

void write_model(JsonWriter& json, const model::ModelSpec& model) {
    json.object("model", [&] {
        json.field("family", model.family);
        json.field("model_type", model.model_type);
        json.field("hidden", model.hidden);
        json.field("vocab", model.vocab);
        json.field("padded_vocab", model.vocab_rows());
        if (model.scores > 0) {
            json.field("scores", model.scores);
        }
        json.field("max_positions", model.max_positions);
        json.field("embedding_width", model.embedding_width);
        json.field("position_rows", model.position_rows);
        json.field("position_offset", model.position_offset);
        json.field("layout", text_of(model.layout));
        json.field("norm_after_residual", model.norm_after_residual);
        json.field("shared_norm", model.shared_norm);
        json.field("conv1d", model.conv1d);
        json.field("final_norm", model.final_norm);
        write_norm(json, "norm", model.norm);
        write_attention(json, model.attention);
        write_mlp(json, model.mlp);
        json.field("tied_embeddings", model.tied_embeddings);
        json.field("lm_head_bias", model.lm_head_bias);
        json.field("embedding_scale", model.embedding_scale);
        json.field("residual_scale", model.residual_scale);
        json.field("logit_scale", model.logit_scale);
        json.field("logit_softcap", model.logit_softcap);
        json.field("stored_dtype", tensor::to_string(model.stored_dtype));
        json.field("layer_count", model.layer_count());
        write_layers(json, model.layers);
        json.list("notes", model.notes, JsonLayout::lines);
    });
}

void write_workload(JsonWriter& json, const model::Workload& workload) {
    json.object("workload", [&] {
        json.field("mode", to_string(workload.mode));
        json.field("batch_size", workload.total_batch());
        json.field("micro_batches", workload.micro_batches);
        json.field("sequence_length", workload.sequence_length);
        json.field("cache_length", workload.cache_slots());
        json.field("chunk_length", workload.chunk_length);
        json.field("insert_length", workload.mode == model::Mode::insert ? workload.insert_length : 0);
        json.field("dtype", tensor::to_string(workload.dtype));
    });
}

/// What each meaning of a dimension is cut over: where tensors are stored, and in the workload's phase.
void write_axes(JsonWriter& json, const plan::Job& job) {
    using partition::Phase;
    const Phase phase = plan::phase_of(job);
    json.array("axes", semantics, [&](partition::Semantic semantic) {
        const partition::ResolvedEntry stored = job.partition_axis.resolve(semantic, Phase::train);
        const partition::ResolvedEntry step = job.partition_axis.resolve(semantic, phase);
        json.object(
            [&] {
                json.field("semantic", text_of(semantic));
                json.field("field", step.field);
                json.field("given", step.given);
                json.list("stored_over", stored.axes);
                json.list("step_over", step.axes);
            },
            JsonLayout::one_line);
    });
}

/// Only where the model has experts.
void write_experts(JsonWriter& json, const plan::Job& job) {
    if (job.model.moe.experts == 0) {
        return;
    }
    json.object("experts", [&] {
        json.field("moe_token_dispatcher_type", text_of(job.dispatcher));
        if (job.experts.use_grouped_gemm) {
            json.field("moe_use_grouped_gemm", *job.experts.use_grouped_gemm);
        }
        json.field("moe_use_legacy_grouped_gemm", job.experts.use_legacy_grouped_gemm);
    });
}

void write_partition(JsonWriter& json, const plan::Job& job) {
    json.object("partition", [&] {
        json.field("rules", text_of(job.rule_source));
        json.array("custom_rules", job.custom_rules, [&](const partition::ParameterRule& rule) {
            json.object(
                [&] {
                    json.field("pattern", rule.pattern);
                    json.field("spec", to_string(rule.spec));
                },
                JsonLayout::one_line);
        });
        write_axes(json, job);
    });
}

}  // namespace

void write_mesh_json(JsonWriter& json, std::string_view key, const mesh::Mesh& mesh) {
    json.object(key, [&] {
        json.array("axes", mesh.axes(), [&](const mesh::Axis& axis) {
            json.object(
                [&] {
                    json.field("name", axis.name);
                    json.field("size", axis.size);
                },
                JsonLayout::one_line);
        });
        json.field("devices", mesh.device_count());
    });
}

void write_job_json(JsonWriter& json, const plan::Job& job) {
    json.object("job", [&] {
        json.field("name", job.name);
        write_model(json, job.model);
        write_mesh_json(json, "mesh", job.mesh);
        write_workload(json, job.workload);
        if (job.pipeline) {
            json.object("pipeline", [&] {
                json.field("axis", job.pipeline->axis);
                json.list("layers", job.pipeline->layers);
                json.field("account_for_embedding", job.pipeline->account_for_embedding);
                json.field("account_for_loss", job.pipeline->account_for_loss);
                json.field("remainder", job.pipeline->remainder_last ? "last" : "first");
            });
        }
        if (job.device_memory) {
            json.field("device_memory", *job.device_memory);
        }
        json.field("provider", text_of(job.provider));
        if (job.int8_weights) {
            json.field("weight_dtype", "int8");
        }
        write_experts(json, job);
        json.object("options", [&] {
            json.field("compat", text_of(job.options.compat));
            json.field("indivisible", text_of(job.options.indivisible));
            json.field("padded_vocab_size", job.options.padded_vocab_size);
            json.field("kv_heads", text_of(job.options.kv_heads));
            json.field("cp_comm_type", to_string(job.options.cp_comm_type));
            json.field("context_parallel_load_balance", job.options.context_parallel_load_balance);
        });
        write_partition(json, job);
    });
}

}  // namespace shardplan::report
