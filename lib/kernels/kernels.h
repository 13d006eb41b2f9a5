// The computations a rank does on its own shards: one interface, two implementations (reference: plain loops, the
// oracle; oneDNN: derived from it). All functions are pure: they read the arguments and write y.
// Views are dense row-major, f32 or bf16; bf16 is computed in float and rounded once, when stored. Shapes are local to
// the rank; a dimension of size 0 is allowed everywhere. Unless said otherwise all views of a call have one dtype.
// Knows nothing of meshes and ranks. Wrong shapes or dtypes throw std::invalid_argument.
// An object must not be used by two threads at once (the kernels themselves use OpenMP threads).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kernels/activation.h"
#include "kernels/params.h"
#include "tensor/view.h"

namespace shardplan::kernels {

using tensor::ConstView;
using tensor::View;

enum class KernelSet : std::uint8_t { reference, onednn };
std::string_view to_string(KernelSet set);

/// How prepare() keeps a weight. int8: each output's weights are multiples of its own f32 scale, the largest magnitude
/// among them / 127, so that each is off by at most half a scale; sums stay float.
enum class WeightFormat : std::uint8_t { plain, int8 };

/// A weight matrix prepared for many products; owns its data. Belongs to the Kernels that made it.
class Weight {
public:
    Weight(std::int64_t inputs, std::int64_t outputs, tensor::DType dtype)
        : inputs_(inputs), outputs_(outputs), dtype_(dtype) {}
    Weight(const Weight&) = delete;
    Weight& operator=(const Weight&) = delete;
    virtual ~Weight() = default;

    std::int64_t inputs() const { return inputs_; }    ///< K
    std::int64_t outputs() const { return outputs_; }  ///< N
    tensor::DType dtype() const { return dtype_; }     ///< i8 for format int8
    /// Bytes it occupies, padding of packed layouts and scales included.
    virtual std::int64_t packed_bytes() const = 0;

private:
    std::int64_t inputs_;
    std::int64_t outputs_;
    tensor::DType dtype_;
};

class Kernels {
public:
    Kernels() = default;
    Kernels(const Kernels&) = delete;
    Kernels& operator=(const Kernels&) = delete;
    virtual ~Kernels() = default;

    /// Implementation, library version and instruction set, for the run report.
    virtual std::string describe() const = 0;

    // y[..., N] = x[..., K] W^T. y may be f32 where x and W are bf16 (partial sums). With an int8 weight x may be f32
    // or bf16, whatever w was.
    virtual std::unique_ptr<Weight> prepare(ConstView w, WeightOrder order,
                                            WeightFormat format = WeightFormat::plain) const = 0;
    virtual void matmul(ConstView x, const Weight& w, View y) const = 0;
    /// Products of one x with several weights of one dtype: ys[i] has the bits that matmul gives for ws[i]. Few rows
    /// take one pass over all weights.
    virtual void matmul_parts(ConstView x, std::span<const Weight* const> ws, std::span<const View> ys) const = 0;
    /// The same on a plain buffer that is used only once (a weight gathered just before).
    virtual void matmul_plain(ConstView x, ConstView w, WeightOrder order, View y) const = 0;

    /// Normalises over the last dimension E of x[..., E]. w[E] and b[E] may be absent (a view without dimensions).
    virtual void norm(ConstView x, ConstView w, ConstView b, const NormParams& params, View y) const = 0;
    /// First half of a norm whose E is sharded: stats (f64, [..., 2]) = local sum and sum of squares, to be added up.
    virtual void norm_statistics(ConstView x, View stats) const = 0;
    /// Second half: `global_size` is E of the whole tensor; w and b are the local parts.
    virtual void norm_apply(ConstView x, ConstView stats, std::int64_t global_size, ConstView w, ConstView b,
                            const NormParams& params, View y) const = 0;

    /// y[..., e] = scale * table[id - first_row, :]; ids (i32, [...]) outside of the table [v_local, e] give zeros.
    virtual void embedding(ConstView ids, ConstView table, std::int64_t first_row, float scale, View y) const = 0;

    /// Rotates x[b, s, h, d]; token j of batch row i is at position start[i] + j. y may be x.
    virtual void rope(ConstView x, std::span<const std::int64_t> start, const RopeParams& params, View y) const = 0;

    /// y[..., m] = the components of x[..., n] from `first` on.
    virtual void take(ConstView x, std::int64_t first, View y) const = 0;
    /// y[b, s, h, d + e] = x[b, s, h, d] with tail[b, s, h, e] behind it; a tail of one head is that of all heads.
    virtual void join(ConstView x, ConstView tail, View y) const = 0;
    /// y[b, s, h, o] = x[b, s, h, i] times the head's own matrix: w is [h * o, i] (out_in) or [h * i, o] (in_out).
    virtual void head_matmul(ConstView x, ConstView w, WeightOrder order, View y) const = 0;

    /// y[b, sq, h, dv] from q[b, sq, h, d], k[b, sk, g, d], v[b, sk, g, dv]. A row that sees no key gives zeros.
    /// With params.value_dim the values are the leading dv components of each row of v, which may be the keys.
    virtual void attention(ConstView q, ConstView k, ConstView v, const AttentionParams& params, View y) const = 0;
    /// For keys sharded over ranks, over the local keys only (all f32): m[b, sq, h] = max score (-inf without a visible
    /// key), l[b, sq, h] = sum exp(score - m), o[b, sq, h, dv] = sum exp(score - m) v.
    virtual void attention_partial(ConstView q, ConstView k, ConstView v, const AttentionParams& params, View o, View m,
                                   View l) const = 0;
    /// Adds further keys to what o, m and l hold from attention_partial over other keys; rows that see none of them
    /// stay as they are, and nothing is computed when no row sees any.
    virtual void attention_accumulate(ConstView q, ConstView k, ConstView v, const AttentionParams& params, View o,
                                      View m, View l) const = 0;
    /// l_scaled = l * exp(m - m_global), all f32 of one shape; to be added up to l_global. l_scaled may be l.
    virtual void softmax_rescale(ConstView l, ConstView m, ConstView m_global, View l_scaled) const = 0;
    /// y[..., d] = o * exp(m - m_global) / l_global: the local part of the attention, to be added up. y may be bf16, or
    /// o.
    virtual void softmax_merge(ConstView o, ConstView m, ConstView m_global, ConstView l_global, View y) const = 0;

    /// routing[..., X] (f32) from logits[..., X]: the weights of the chosen experts, 0 for the others. `correction`
    /// [X], may be absent, is added to the scores by which experts and groups are chosen, not to the weights.
    virtual void route(ConstView logits, ConstView correction, const RouteParams& params, View routing) const = 0;
    /// y[..., o] = sum over the experts x of routing[..., x] * down[x] (act(gate[x] row) * (up[x] row)) for x[..., e],
    /// gate and up [X, f, e], down [X, o, f]; rows whose weight is 0 are not computed. routing is f32; between the
    /// products values have the dtype of x, sums are float and rounded once. y may be f32 where the others are bf16.
    virtual void experts(ConstView x, ConstView routing, const ExpertWeights& weights, const ExpertParams& params,
                         View y) const = 0;
    /// y[r, N] = x[r, K] w[g]^T for the rows r of group g, [first_rows[g], first_rows[g + 1]); w [G, N, K] or [G, K,
    /// N].
    virtual void grouped_matmul(ConstView x, ConstView w, WeightOrder order, std::span<const std::int64_t> first_rows,
                                View y) const = 0;

    // Elementwise, any mixture of f32 and bf16; y may be one of the inputs.
    virtual void activate(ConstView x, Activation activation, View y) const = 0;
    virtual void glu(ConstView gate, ConstView up, Activation activation, View y) const = 0;  ///< act(gate) * up
    virtual void add(ConstView a, ConstView b, View y) const = 0;
    virtual void add_bias(ConstView x, ConstView bias, View y) const = 0;  ///< x[..., N] + bias[N]
    virtual void scale(ConstView x, float factor, View y) const = 0;
    virtual void gate_rows(ConstView x, ConstView gate, View y) const = 0;  ///< x[..., e] * sigmoid(gate[..., 1])
    /// y[t, ...] = x[t, ...] * factors[t], where the leading dimensions that make up t are those of factors.size().
    virtual void scale_rows(ConstView x, std::span<const float> factors, View y) const = 0;
    virtual void softcap(ConstView x, float cap, View y) const = 0;  ///< cap * tanh(x / cap)
    virtual void clip(ConstView x, float limit, View y) const = 0;   ///< into [-limit, limit]
    /// Changes the dtype: f32, bf16 or f16 to f32 or bf16. Must not be used in place.
    virtual void convert(ConstView x, View y) const = 0;

    /// Copies the tokens of k[b, s, g, d] into cache[b, c_local, g, d] whose row 0 is position `cache_start`; token j
    /// of batch row i has position first[i] + j and is dropped where that is outside of the local cache.
    virtual void write_cache(ConstView k, std::span<const std::int64_t> first, std::int64_t cache_start,
                             View cache) const = 0;
};

std::unique_ptr<Kernels> make_kernels(KernelSet set);

}  // namespace shardplan::kernels
