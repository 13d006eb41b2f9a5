// The calls whose form differs between the major versions of oneDNN; api_v2.cpp or api_v3.cpp is built, never both.
// Everything else oneDNN's C++ interface needs is the same in both and lives in library.cpp. The types are the opaque
// handles of oneDNN's C interface, so that no other file sees its headers.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

struct dnnl_engine;
struct dnnl_primitive_desc;

namespace shardplan::kernels::onednn {

enum class Layout : std::uint8_t {
    row_major,     ///< [rows, cols]
    column_major,  ///< stored as [cols, rows]
    library,       ///< chosen by oneDNN
};

struct MatrixDesc {
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    tensor::DType dtype = tensor::DType::f32;  ///< f32 or bf16
    Layout layout = Layout::row_major;
};

/// y = x w. The caller owns the result; nullptr where oneDNN has no implementation on this machine (bf16 needs
/// AVX-512).
dnnl_primitive_desc* create_matmul(dnnl_engine* engine, const MatrixDesc& x, const MatrixDesc& w, const MatrixDesc& y);

/// How a product of create_matmul wants its weight.
enum class Packing : std::uint8_t {
    plain,   ///< not packed: one of the two orders of a matrix
    blocks,  ///< exactly the blocks of tiles.h, columns and k padded with zeros
    other,
};
Packing weight_packing(const dnnl_primitive_desc* product, const MatrixDesc& w);

}  // namespace shardplan::kernels::onednn
