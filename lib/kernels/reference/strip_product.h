// Products with weights packed into our own blocks (tiles.h): where oneDNN does not pack (before AVX-512) or cannot
// multiply (bf16 there), and for int8. One copy serves any number of rows. A row's result depends neither on the number
// of rows nor on how the columns are cut.
#pragma once

#include <span>
#include <vector>

#include "kernels/huge_buffer.h"
#include "kernels/reference/matmul.h"

namespace shardplan::kernels {

/// f32, pairs of bf16, or i8 with a factor for each column.
struct StripWeight {
    const std::byte* data = nullptr;
    tensor::DType dtype = tensor::DType::bf16;
    std::span<const float> scales = {};  ///< [N] for i8
};

/// Bytes of the elements, padded with zeros to whole blocks of columns and to pairs of k.
std::int64_t strip_bytes(WeightSize size, tensor::DType dtype);

HugeBuffer pack_strips(const ConstView& w, WeightOrder order, WeightSize size);

/// Rounds each column of w (f32 or bf16) to multiples of its scale, the largest magnitude in it / 127, and packs that.
struct QuantisedStrips {
    HugeBuffer data;
    std::vector<float> scales;
};
QuantisedStrips pack_quantised(const ConstView& w, WeightOrder order, WeightSize size);

/// What prepare() makes in format int8, the same in both implementations.
class QuantisedWeight final : public Weight {
public:
    QuantisedWeight(const ConstView& w, WeightOrder order, WeightSize size);
    std::int64_t packed_bytes() const override;
    StripWeight strips() const { return {packed_.data.data(), tensor::DType::i8, packed_.scales}; }

private:
    QuantisedStrips packed_;
};

/// y = x W^T; x is f32 or bf16.
void multiply_strips(const ConstView& x, const StripWeight& w, const MatmulShape& shape, const View& y);

/// One of several weights that are multiplied with the same rows, and all of them in one pass; shape.n is not used.
struct StripPart {
    StripWeight w;
    std::int64_t n = 0;
    View y;
};
void multiply_strips(const ConstView& x, const MatmulShape& shape, std::span<const StripPart> parts);

/// Where w is quantised: checks the product, says its shape and adds it to `parts`.
bool add_quantised(const ConstView& x, const Weight& w, const View& y, MatmulShape& shape,
                   std::vector<StripPart>& parts);

}  // namespace shardplan::kernels
