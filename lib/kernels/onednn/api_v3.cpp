// oneDNN 3.x: primitive descriptors are made directly. Written from the public documentation of 3.x and not yet
// compiled against it: the supported distributions ship 2.x.
#include <dnnl.hpp>

#include "kernels/onednn/api.h"
#include "kernels/onednn/packing.h"

static_assert(DNNL_VERSION_MAJOR == 3, "this file is for oneDNN 3.x");

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
    return released(
        dnnl::matmul::primitive_desc(borrowed, desc_of(x), desc_of(w), desc_of(y), dnnl::primitive_attr(), true));
}

Packing weight_packing(const dnnl_primitive_desc* product, const MatrixDesc& w) {
    const const_dnnl_memory_desc_t handle = dnnl_primitive_desc_query_md(product, dnnl_query_weights_md, 0);
    dnnl_memory_desc_t copy = nullptr;
    if (handle == nullptr || dnnl_memory_desc_clone(&copy, handle) != dnnl_success) {
        return Packing::other;
    }
    const dnnl::memory::desc desc(copy);
    if (desc.get_ndims() != 2 || desc.get_format_kind() != dnnl::memory::format_kind::blocked) {
        return Packing::other;
    }
    const auto sizes = desc.get_inner_blks();
    const auto dimensions = desc.get_inner_idxs();
    const auto strides = desc.get_strides();
    const auto padded = desc.get_padded_dims();
    // Compensations are stored behind the elements and cannot be asked for: the size shows them.
    const auto bytes = static_cast<std::int64_t>(desc.get_size());
    if (bytes != padded[0] * padded[1] * tensor::size_of(w.dtype)) {
        return Packing::other;
    }
    return packing_of({.inner_count = desc.get_inner_nblks(),
                       .sizes = sizes.data(),
                       .dimensions = dimensions.data(),
                       .strides = strides.data(),
                       .padded = padded.data(),
                       .offset = desc.get_submemory_offset()},
                      w);
}

}  // namespace shardplan::kernels::onednn
