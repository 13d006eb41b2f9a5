#include "model/layer_builder.h"

#include <fmt/format.h>

#include <utility>

#include "base/checked.h"
#include "model/latent_attention.h"
#include "model/mlp_builder.h"

namespace shardplan::model {
namespace {

enum class Part : std::uint8_t { query, key, value };

class LayerBuilder {
public:
    LayerBuilder(const ModelSpec& model, const LayerSpec& layer, bool absorb, BlockBuilder& block)
        : m_(model), layer_(layer), absorb_(absorb), b_(block), workload_(block.workload()) {}

    TensorId build(TensorId x) { return m_.layout == BlockLayout::parallel ? parallel(x) : sequential(x); }

private:
    TensorId sequential(TensorId x);
    TensorId parallel(TensorId x);
    TensorId join(TensorId x, TensorId partial, const LinearSpec& last, bool has_bias, std::string_view side);

    TensorId attention(TensorId x);
    TensorId project(TensorId x, Part part);
    TensorId cache(TensorId fresh, const std::string& name);
    TensorId attend(TensorId q, TensorId k, TensorId v);
    LinearSpec projection(Part part) const;
    FusedView rows_of(Part part) const;
    LinearSpec out_projection() const;

    TensorId mlp(TensorId x) { return layer_.moe ? build_moe(b_, x, m_) : build_mlp(b_, x, m_); }
    bool has_down_bias() const { return m_.mlp.down_bias && !layer_.moe; }

    OpAttributes head_attributes(std::int64_t heads) const {
        OpAttributes attributes;
        attributes.heads = heads;
        attributes.kv_heads = m_.attention.kv_heads;
        attributes.head_dim = m_.attention.head_dim;
        return attributes;
    }

    const ModelSpec& m_;
    const LayerSpec& layer_;
    bool absorb_;
    BlockBuilder& b_;
    const Workload& workload_;
};

// --- attention ------------------------------------------------------------------------------------------------------

FusedView LayerBuilder::rows_of(Part part) const {
    const AttentionSpec& a = m_.attention;
    if (a.storage == QkvStorage::separate) {
        return {};
    }
    const bool grouped = a.storage == QkvStorage::grouped;
    const std::int64_t groups = grouped ? a.kv_heads : 1;
    const std::int64_t queries = (grouped ? a.heads / a.kv_heads : a.heads) * a.head_dim;
    const std::int64_t keys = (grouped ? 1 : a.kv_heads) * a.head_dim;
    const std::int64_t offset = part == Part::query ? 0 : part == Part::key ? queries : queries + keys;
    return {0, groups, queries + 2 * keys, offset, part == Part::query ? queries : keys};
}

LinearSpec LayerBuilder::projection(Part part) const {
    const AttentionSpec& a = m_.attention;
    const bool fused = a.storage != QkvStorage::separate;
    const bool query = part == Part::query;
    const char* letter = query ? "q" : part == Part::key ? "k" : "v";
    const std::string& own = query ? m_.names.q : part == Part::key ? m_.names.k : m_.names.v;
    LinearSpec spec;
    spec.op = fmt::format("{}_proj", letter);
    spec.tensor = fused ? m_.names.qkv : own;
    spec.part = fused ? letter : "";
    spec.slot = Slot::qkv;
    spec.parallel = query ? ParallelDim::heads : ParallelDim::kv_heads;
    spec.in = m_.hidden;
    spec.out = base::checked_mul(query ? a.heads : a.kv_heads, a.head_dim);
    spec.stored_out = fused ? base::checked_mul(a.heads + 2 * a.kv_heads, a.head_dim) : 0;
    spec.rows = rows_of(part);
    spec.transposed = m_.conv1d;
    spec.role = query ? TensorRole::query_flat : TensorRole::key_flat;
    return spec;
}

TensorId LayerBuilder::project(TensorId x, Part part) {
    const AttentionSpec& a = m_.attention;
    const bool query = part == Part::query;
    const bool value = part == Part::value;
    const std::string letter = query ? "q" : value ? "v" : "k";
    const LinearSpec spec = projection(part);
    TensorId t = b_.linear(x, spec);
    if (query ? a.q_bias : value ? a.v_bias : a.k_bias) {
        t = b_.bias(t, spec, spec.role);
    }
    const std::string& norm_name = query ? m_.names.q_norm : m_.names.k_norm;
    const Slot norm_slot = query ? Slot::q_norm : Slot::k_norm;
    if (a.qk_norm == QkNorm::full && !value) {
        t = b_.norm(t, letter + "_norm", norm_slot, a.qk_norm_spec, norm_name);
    }
    if (a.qkv_clip > 0.0) {
        OpAttributes attributes;
        attributes.limit = a.qkv_clip;
        t = b_.apply(OpKind::clip, letter + "_clip", Slot::none, {t}, {letter + ".clipped", spec.role, b_.shape(t)},
                     attributes);
    }
    const TensorRole role = query ? TensorRole::query : TensorRole::key;
    const std::int64_t heads = query ? a.heads : a.kv_heads;
    const tensor::Shape shape = {b_.shape(t)[0], b_.shape(t)[1], heads, a.head_dim};
    t = b_.apply(OpKind::split_heads, letter + "_split", Slot::none, {t}, {letter + ".heads", role, shape},
                 head_attributes(heads));
    if (a.qk_norm == QkNorm::per_head && !value) {
        t = b_.norm(t, letter + "_norm", norm_slot, a.qk_norm_spec, norm_name);
    }
    const bool rotates = !value && layer_.rope && (layer_.local_rope ? a.local_rope : a.rope).rotary_dim > 0;
    if (rotates) {
        OpAttributes attributes;
        attributes.local_rope = layer_.local_rope;
        t = b_.apply(OpKind::rope, letter + "_rope", Slot::none, {t}, {letter + ".rotated", role, shape}, attributes);
    }
    if (a.qk_norm == QkNorm::l2 && layer_.rope && !value) {
        t = b_.norm(t, letter + "_norm", norm_slot, a.qk_norm_spec, norm_name, role);
    }
    if (a.temperature_scale > 0.0 && !layer_.rope && query) {
        t = b_.apply(OpKind::temperature, "q_temperature", Slot::none, {t}, {"q.tempered", role, shape});
    }
    return t;
}

/// Writes fresh keys or values to the cache if there is one; returns what attention reads.
TensorId LayerBuilder::cache(TensorId fresh, const std::string& name) {
    if (workload_.cache_slots() == 0) {
        return fresh;
    }
    const AttentionSpec& a = m_.attention;
    const TensorId cache =
        b_.input(fmt::format("cache.{}", name), TensorKind::cache, TensorRole::kv_cache,
                 {workload_.batch_size, workload_.cache_slots(), a.kv_heads, a.head_dim}, workload_.dtype);
    b_.apply_into(OpKind::cache_write, fmt::format("{}_cache", name), {fresh}, cache);
    return workload_.reads_cache() ? cache : fresh;
}

TensorId LayerBuilder::attend(TensorId q, TensorId k, TensorId v) {
    const AttentionSpec& a = m_.attention;
    OpAttributes attributes = head_attributes(a.heads);
    attributes.attention_scale = a.scale;
    attributes.attention_softcap = a.logit_softcap;
    attributes.window = layer_.sliding_window;
    attributes.chunk = layer_.chunk;
    attributes.sinks = a.sinks;
    attributes.from_cache = workload_.reads_cache();
    const tensor::Shape shape = b_.shape(q);
    std::vector<TensorId> inputs = {q, k, v};
    if (a.sinks) {
        Parameter sinks;
        sinks.name = m_.names.sinks;
        sinks.kind = ParameterKind::sinks;
        sinks.parallel = ParallelDim::heads;
        sinks.shape = sinks.stored_shape = {a.heads};
        inputs.push_back(b_.parameter(std::move(sinks)));
    }
    const TensorId out = b_.apply(OpKind::attention, "attention", Slot::core_attention, std::move(inputs),
                                  {"attention.output", TensorRole::attention_output, shape}, attributes);
    return b_.apply(OpKind::merge_heads, "merge_heads", Slot::none, {out},
                    {"attention.merged",
                     TensorRole::attention_merged,
                     {shape[0], shape[1], base::checked_mul(a.heads, a.head_dim)}},
                    head_attributes(a.heads));
}

LinearSpec LayerBuilder::out_projection() const {
    LinearSpec spec;
    spec.op = "o_proj";
    spec.tensor = m_.names.out;
    spec.slot = Slot::attention_out;
    spec.kind = ParameterKind::row_linear;
    spec.parallel = ParallelDim::heads;
    spec.in = base::checked_mul(m_.attention.heads, m_.attention.value_dim());
    spec.out = m_.hidden;
    spec.transposed = m_.conv1d;
    spec.role = TensorRole::partial_hidden;
    return spec;
}

TensorId LayerBuilder::attention(TensorId x) {
    if (m_.attention.is_latent()) {
        return b_.linear(build_latent_attention(b_, x, m_, absorb_ && workload_.mode == Mode::decode),
                         out_projection());
    }
    const TensorId q = project(x, Part::query);
    const TensorId k = project(x, Part::key);
    const TensorId v = project(x, Part::value);
    const TensorId keys = cache(k, "k");
    const TensorId values = cache(v, "v");
    return b_.linear(attend(q, keys, values), out_projection());
}

// --- the layer ------------------------------------------------------------------------------------------------------

/// Bias, norm after the sublayer, residual scale, residual: after the reduction of the partial sums, each once.
TensorId LayerBuilder::join(TensorId x, TensorId partial, const LinearSpec& last, bool has_bias,
                            std::string_view side) {
    const bool attention_side = side == "attention";
    TensorId t = partial;
    if (has_bias) {
        t = b_.bias(t, last, TensorRole::hidden);
    }
    const std::string& post = attention_side ? m_.names.post_attention_norm : m_.names.post_mlp_norm;
    if (!post.empty()) {
        t = b_.norm(t, fmt::format("post_{}_norm", side),
                    attention_side ? Slot::post_attention_norm : Slot::post_mlp_norm, m_.norm, post);
    }
    if (m_.residual_scale != 1.0) {
        const TensorRole role = t == partial ? TensorRole::partial_hidden : TensorRole::hidden;
        t = b_.scale(t, fmt::format("{}_scale", side), m_.residual_scale, role);
    }
    return b_.add(x, t, fmt::format("{}_residual", side), TensorRole::hidden);
}

TensorId LayerBuilder::sequential(TensorId x) {
    const auto norm = [&](TensorId t, const char* name, Slot slot, const std::string& tensor, TensorRole role) {
        return tensor.empty() ? t : b_.norm(t, name, slot, m_.norm, tensor, role);
    };
    const bool after = m_.norm_after_residual;
    const std::string& first = m_.names.pre_attention_norm;
    const std::string& second = m_.names.pre_mlp_norm;
    TensorId t = after ? x : norm(x, "input_norm", Slot::input_norm, first, TensorRole::free);
    t = join(x, attention(t), out_projection(), m_.attention.out_bias, "attention");
    x = after ? norm(t, "post_attention_norm", Slot::post_attention_norm, first, TensorRole::hidden) : t;
    t = after ? x : norm(x, "pre_mlp_norm", Slot::pre_mlp_norm, second, TensorRole::free);
    t = join(x, mlp(t), down_projection(m_), has_down_bias(), "mlp");
    return after ? norm(t, "post_mlp_norm", Slot::post_mlp_norm, second, TensorRole::hidden) : t;
}

/// The partial sums of both sides are added first, so that they are reduced once.
TensorId LayerBuilder::parallel(TensorId x) {
    const TensorId normed = b_.norm(x, "input_norm", Slot::input_norm, m_.norm, m_.names.pre_attention_norm);
    const TensorId mlp_input =
        m_.shared_norm ? normed : b_.norm(x, "pre_mlp_norm", Slot::pre_mlp_norm, m_.norm, m_.names.pre_mlp_norm);
    const TensorId attended = attention(normed);
    const TensorId computed = mlp(mlp_input);
    TensorId t = b_.add(attended, computed, "branches", TensorRole::partial_hidden);
    TensorRole role = TensorRole::partial_hidden;
    if (m_.attention.out_bias) {
        t = b_.bias(t, out_projection(), role = TensorRole::hidden);
    }
    if (has_down_bias()) {
        t = b_.bias(t, down_projection(m_), role = TensorRole::hidden);
    }
    if (m_.residual_scale != 1.0) {
        t = b_.scale(t, "branches_scale", m_.residual_scale, role);
    }
    return b_.add(x, t, "residual", TensorRole::hidden);
}

}  // namespace

Block build_layer(const ModelSpec& model, const LayerSpec& layer, std::string name, std::vector<int> layers,
                  const Workload& workload, bool absorb, std::vector<Parameter>& parameters) {
    BlockBuilder block(std::move(name), workload, parameters);
    const TensorId x = block.input("input", TensorKind::activation, TensorRole::hidden,
                                   {workload.batch_size, workload.query_length(), model.hidden}, workload.dtype);
    const TensorId output = LayerBuilder(model, layer, absorb, block).build(x);
    return block.take(x, output, std::move(layers));
}

}  // namespace shardplan::model
