// What the kernels need of oneDNN, without its types: packed weights and products. Primitives are made
// once for each shape and kept. One thread at a time may call. Empty matrices must not get here (oneDNN divides by
// their sizes).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/huge_buffer.h"
#include "kernels/kernels.h"
#include "kernels/onednn/api.h"
#include "kernels/reference/matmul.h"

namespace shardplan::kernels::onednn {

/// A weight in the layout that oneDNN prefers; where it does not pack, the rows [N, K], which it reads as fast as the
/// other order. One copy serves every number of rows.
class PackedWeight {
public:
    PackedWeight(HugeBuffer data, Packing packing) : data_(std::move(data)), packing_(packing) {}
    std::int64_t bytes() const { return data_.bytes(); }
    const std::byte* data() const { return data_.data(); }
    Packing packing() const { return packing_; }

private:
    HugeBuffer data_;
    Packing packing_;
};

class Library {
public:
    Library();
    ~Library();
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;

    /// "oneDNN 2.6.3 (AVX2)"
    std::string describe() const;
    /// Whether this machine can multiply matrices of the type, with results in it and in f32.
    bool multiplies(tensor::DType dtype) const;

    /// How pack() would lay a weight out. @pre multiplies(dtype), size not empty
    Packing packing(WeightSize size, tensor::DType dtype);
    std::unique_ptr<PackedWeight> pack(const ConstView& w, WeightOrder order, WeightSize size);
    void matmul(const ConstView& x, const PackedWeight& w, const MatmulShape& shape, const View& y);
    void matmul_plain(const ConstView& x, const ConstView& w, WeightOrder order, const MatmulShape& shape,
                      const View& y);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace shardplan::kernels::onednn
