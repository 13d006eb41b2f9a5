#include "model/latent_attention.h"

#include <utility>

#include "base/checked.h"

namespace shardplan::model {
namespace {

/// A component of the cached vector, or of the projection that makes it.
enum class Part : std::uint8_t { latent, rope };
/// What the up side makes of a latent.
enum class Made : std::uint8_t { key, value };

class LatentBuilder {
public:
    LatentBuilder(BlockBuilder& block, const ModelSpec& model, bool absorb)
        : b_(block), m_(model), a_(model.attention), latent_(model.attention.latent), absorb_(absorb) {}

    TensorId build(TensorId x) {
        const TensorId q = queries(x);
        const TensorId latent = fresh_latent(x);
        const TensorId key = fresh_key(x);
        const TensorId cache = write_cache(latent, key);
        TensorId out = -1;
        if (absorb_) {
            out = absorbed(q, cache);
        } else if (reads_cache()) {
            const TensorId cached = merge(take(cache, "cached_latent", 0, latent_.kv_rank), "cached_latent_rows");
            out = expanded(q, cached, take(cache, "cached_k_rope", latent_.kv_rank, latent_.rope_dim));
        } else {
            out = expanded(q, latent, key);
        }
        const tensor::Shape shape = b_.shape(out);
        return b_.apply(OpKind::merge_heads, "merge_heads", Slot::none, {out},
                        {"attention.merged", TensorRole::attention_merged, {shape[0], shape[1], shape[2] * shape[3]}},
                        heads_of(out));
    }

private:
    bool reads_cache() const { return b_.workload().reads_cache(); }

    OpAttributes heads_of(TensorId split) const {
        OpAttributes attributes;
        attributes.heads = b_.shape(split)[2];
        attributes.head_dim = b_.shape(split)[3];
        return attributes;
    }

    // --- projections ------------------------------------------------------------------------------------------------

    TensorId queries(TensorId x) {
        std::int64_t width = m_.hidden;
        if (latent_.q_rank > 0) {
            LinearSpec down = into_latent("q_a_proj", m_.names.q_down, Slot::q_down);
            down.out = width = latent_.q_rank;
            x = norm(project(x, down), "q_a_norm", m_.names.q_down_norm);
        }
        LinearSpec up;
        up.op = latent_.q_rank > 0 ? "q_b_proj" : "q_proj";
        up.tensor = m_.names.q;
        up.slot = Slot::q_up;
        up.parallel = ParallelDim::heads;
        up.in = width;
        up.out = base::checked_mul(a_.heads, a_.head_dim);
        up.role = TensorRole::query_flat;
        // Absorbed, what attention reads is of another width: only that has the role.
        const TensorRole role = absorb_ ? TensorRole::free : TensorRole::query;
        const TensorId q = split(b_.linear(x, up), "q_split", a_.heads, role);
        return rope(q, "q_rope", latent_.nope_dim, role);
    }

    LinearSpec into_latent(const char* op, const std::string& tensor, Slot slot) const {
        LinearSpec spec;
        spec.op = op;
        spec.tensor = tensor;
        spec.slot = slot;
        spec.kind = ParameterKind::latent_linear;
        spec.in = m_.hidden;
        return spec;
    }

    LinearSpec kv_down(Part part) const {
        const bool latent = part == Part::latent;
        LinearSpec spec = into_latent(latent ? "kv_a_proj" : "k_rope_proj", m_.names.kv_down, Slot::kv_down);
        spec.part = latent ? "latent" : "rope";
        spec.out = latent ? latent_.kv_rank : latent_.rope_dim;
        spec.stored_out = latent_.cache_width();
        spec.rows = {0, 1, spec.stored_out, latent ? 0 : latent_.kv_rank, spec.out};
        return spec;
    }

    TensorId project(TensorId x, const LinearSpec& spec) {
        const TensorId t = b_.linear(x, spec);
        return latent_.down_bias ? b_.bias(t, spec, TensorRole::free) : t;
    }

    TensorId norm(TensorId x, const char* name, const std::string& tensor) {
        return b_.norm(x, name, Slot::latent_norm, latent_.norm, tensor);
    }

    TensorId fresh_latent(TensorId x) {
        return norm(project(x, kv_down(Part::latent)), "kv_a_norm", m_.names.kv_down_norm);
    }

    TensorId fresh_key(TensorId x) {
        const TensorId key = project(x, kv_down(Part::rope));
        return rope(split(key, "k_rope_split", 1, TensorRole::free), "k_rope", 0, TensorRole::free);
    }

    /// In the checkpoint each head has its key's rows, then its value's.
    LinearSpec kv_up(Made made) const {
        const bool key = made == Made::key;
        const std::int64_t stride = latent_.nope_dim + latent_.value_dim;
        const std::int64_t rows = key ? latent_.nope_dim : latent_.value_dim;
        LinearSpec spec;
        spec.op = key ? "k_b_proj" : "v_b_proj";
        spec.tensor = m_.names.kv_up;
        spec.part = key ? "k" : "v";
        spec.slot = Slot::kv_up;
        spec.parallel = ParallelDim::heads;
        spec.in = latent_.kv_rank;
        spec.out = base::checked_mul(a_.heads, rows);
        spec.stored_out = base::checked_mul(a_.heads, stride);
        spec.rows = {0, a_.heads, stride, key ? 0 : latent_.nope_dim, rows};
        spec.role = reads_cache() ? TensorRole::free : TensorRole::key_flat;
        return spec;
    }

    // --- cache and attention ----------------------------------------------------------------------------------------

    /// The cache after the new tokens are in it; -1 without one.
    TensorId write_cache(TensorId latent, TensorId key) {
        const Workload& workload = b_.workload();
        if (workload.cache_slots() == 0) {
            return -1;
        }
        const TensorId row = join(split(latent, "latent_row", 1, TensorRole::free), key, "cache_row", TensorRole::free);
        const TensorId cache =
            b_.input("cache.latent", TensorKind::cache, TensorRole::latent_cache,
                     {workload.batch_size, workload.cache_slots(), 1, latent_.cache_width()}, workload.dtype);
        b_.apply_into(OpKind::cache_write, "latent_cache", {row}, cache);
        return cache;
    }

    TensorId expanded(TensorId q, TensorId latent, TensorId key) {
        const TensorRole role = reads_cache() ? TensorRole::free : TensorRole::key;
        const TensorId nope = split(b_.linear(latent, kv_up(Made::key)), "k_split", a_.heads, TensorRole::free);
        const TensorId v = split(b_.linear(latent, kv_up(Made::value)), "v_split", a_.heads, role);
        const TensorId k = join(nope, key, "k_join", role);
        return attend({q, k, v}, latent_.value_dim, a_.heads, TensorRole::attention_output);
    }

    TensorId absorbed(TensorId q, TensorId cache) {
        const TensorId nope = take(q, "q_nope", 0, latent_.nope_dim);
        const TensorId rotated = take(q, "q_rotated", latent_.nope_dim, latent_.rope_dim);
        const TensorId query = head_linear(nope, kv_up(Made::key), "q_absorb", true, TensorRole::free);
        const TensorId joined = join(query, rotated, "q_join", TensorRole::query);
        const TensorId out = attend({joined, cache}, latent_.kv_rank, 1, TensorRole::free);
        return head_linear(out, kv_up(Made::value), "v_absorb", false, TensorRole::attention_output);
    }

    TensorId attend(std::vector<TensorId> inputs, std::int64_t width, std::int64_t kv_heads, TensorRole role) {
        OpAttributes attributes = heads_of(inputs.front());
        attributes.kv_heads = kv_heads;
        attributes.attention_scale = a_.scale;
        attributes.from_cache = reads_cache();
        tensor::Shape shape = b_.shape(inputs.front());
        shape.back() = width;
        return b_.apply(OpKind::attention, "attention", Slot::core_attention, std::move(inputs),
                        {"attention.output", role, std::move(shape)}, attributes);
    }

    // --- small ops --------------------------------------------------------------------------------------------------

    TensorId split(TensorId x, const char* name, std::int64_t heads, TensorRole role) {
        tensor::Shape shape = b_.shape(x);
        OpAttributes attributes;
        attributes.heads = heads;
        attributes.head_dim = shape[2] / heads;
        return b_.apply(OpKind::split_heads, name, Slot::none, {x},
                        {std::string(name) + ".out", role, {shape[0], shape[1], heads, shape[2] / heads}}, attributes);
    }

    TensorId merge(TensorId x, const char* name) {
        const tensor::Shape shape = b_.shape(x);
        return b_.apply(OpKind::merge_heads, name, Slot::none, {x},
                        {std::string(name) + ".out", TensorRole::free, {shape[0], shape[1], shape[2] * shape[3]}},
                        heads_of(x));
    }

    TensorId rope(TensorId x, const char* name, std::int64_t first, TensorRole role) {
        OpAttributes attributes;
        attributes.first = first;
        const tensor::Shape shape = b_.shape(x);
        return b_.apply(OpKind::rope, name, Slot::none, {x}, {std::string(name) + ".out", role, shape}, attributes);
    }

    TensorId take(TensorId x, const char* name, std::int64_t first, std::int64_t count) {
        OpAttributes attributes;
        attributes.first = first;
        tensor::Shape shape = b_.shape(x);
        shape.back() = count;
        return b_.apply(OpKind::take, name, Slot::none, {x},
                        {std::string(name) + ".out", TensorRole::free, std::move(shape)}, attributes);
    }

    TensorId join(TensorId x, TensorId y, const char* name, TensorRole role) {
        tensor::Shape shape = b_.shape(x);
        shape.back() += b_.shape(y).back();
        return b_.apply(OpKind::join, name, Slot::none, {x, y}, {std::string(name) + ".out", role, std::move(shape)});
    }

    TensorId head_linear(TensorId x, const LinearSpec& spec, const char* name, bool transposed, TensorRole role) {
        OpAttributes attributes = heads_of(x);
        attributes.transposed = transposed;
        tensor::Shape shape = b_.shape(x);
        shape.back() = transposed ? spec.in : spec.out / a_.heads;
        return b_.apply(OpKind::head_linear, name, Slot::kv_up, {x, b_.weight(spec)},
                        {std::string(name) + ".out", role, std::move(shape)}, attributes);
    }

    BlockBuilder& b_;
    const ModelSpec& m_;
    const AttentionSpec& a_;
    const LatentSpec& latent_;
    bool absorb_;
};

}  // namespace

TensorId build_latent_attention(BlockBuilder& block, TensorId x, const ModelSpec& model, bool absorb) {
    return LatentBuilder(block, model, absorb).build(x);
}

}  // namespace shardplan::model
