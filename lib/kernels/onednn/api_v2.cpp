// oneDNN 2.x: primitive descriptors are made from operation descriptors. Built and tested with 2.6.3.
#include <dnnl.hpp>

#include "kernels/onednn/api.h"
#include "kernels/onednn/packing.h"

static_assert(DNNL_VERSION_MAJOR == 2, "this file is for oneDNN 2.x");

namespace shardplan::kernels::onednn {
namespace {

/// A copy of the handle that outlives the C++ object.
dnnl_primitive_desc* released(const dnnl::primitive_desc_base& desc) {
    dnnl_primitive_desc_t copy = nullptr;
    if (!desc || dnnl_primitive_desc_clone(&copy, desc.get()) != dnnl_success) {
        return nullptr;
    }
    return copy;
}

dnnl::memory::desc desc_of(const MatrixDesc& matrix) {
    using Tag = dnnl::memory::format_tag;
    using Type = dnnl::memory::data_type;
    const Tag tag = matrix.layout == Layout::row_major      ? Tag::ab
                    : matrix.layout == Layout::column_major ? Tag::ba
                                                            : Tag::any;
    return {{matrix.rows, matrix.cols}, matrix.dtype == tensor::DType::bf16 ? Type::bf16 : Type::f32, tag};
}

}  // namespace

dnnl_primitive_desc* create_matmul(dnnl_engine* engine, const MatrixDesc& x, const MatrixDesc& w, const MatrixDesc& y) {
    const dnnl::engine borrowed(engine, true);
    return released(dnnl::matmul::primitive_desc({desc_of(x), desc_of(w), desc_of(y)}, borrowed, true));
}

Packing weight_packing(const dnnl_primitive_desc* product, const MatrixDesc& w) {
    const dnnl_memory_desc_t* desc = dnnl_primitive_desc_query_md(product, dnnl_query_weights_md, 0);
    if (desc == nullptr || desc->ndims != 2 || desc->format_kind != dnnl_blocked || desc->extra.flags != 0) {
        return Packing::other;
    }
    const dnnl_blocking_desc_t& blocking = desc->format_desc.blocking;
    return packing_of({.inner_count = blocking.inner_nblks,
                       .sizes = blocking.inner_blks,
                       .dimensions = blocking.inner_idxs,
                       .strides = blocking.strides,
                       .padded = desc->padded_dims,
                       .offset = desc->offset0},
                      w);
}

}  // namespace shardplan::kernels::onednn
