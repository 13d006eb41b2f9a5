#include "kernels/onednn/onednn_kernels.h"

#include <fmt/format.h>

#include <vector>

#include "kernels/checks.h"
#include "kernels/onednn/library.h"
#include "kernels/reference/panel_product.h"
#include "kernels/reference/reference_kernels.h"
#include "kernels/reference/row_groups.h"
#include "kernels/reference/small_product.h"
#include "kernels/reference/strip_product.h"

namespace shardplan::kernels {
namespace {

using onednn::Library;
using tensor::DType;

/// Packed by oneDNN, or into our strips where oneDNN cannot multiply it (empty, or bf16 before AVX-512) or would pack
/// it anew for each product (f32 before AVX-512: 1.2 to 1.3 times slower than strips).
class OnednnWeight final : public Weight {
public:
    OnednnWeight(WeightSize size, DType dtype, std::unique_ptr<onednn::PackedWeight> packed)
        : Weight(size.inputs, size.outputs, dtype), packed_(std::move(packed)) {}
    OnednnWeight(WeightSize size, DType dtype, HugeBuffer strips)
        : Weight(size.inputs, size.outputs, dtype), strips_(std::move(strips)) {}

    std::int64_t packed_bytes() const override { return packed_ ? packed_->bytes() : strips_.bytes(); }
    const onednn::PackedWeight* packed() const { return packed_.get(); }
    const std::byte* strips() const { return strips_.data(); }

private:
    std::unique_ptr<onednn::PackedWeight> packed_;
    HugeBuffer strips_;
};

class OnednnKernels final : public ReferenceKernels {
public:
    std::string describe() const override {
        const bool f32 = !strips_are_faster({block_columns, block_columns}, DType::f32);
        const bool bf16 = library_.multiplies(DType::bf16);
        if (f32 && bf16) {
            return library_.describe();
        }
        return fmt::format("{}; products of {}: {}", library_.describe(), f32 ? "bf16" : "prepared weights and of bf16",
                           ReferenceKernels::describe());
    }

    std::unique_ptr<Weight> prepare(ConstView w, WeightOrder order, WeightFormat format) const override {
        const WeightSize size = check_weight("prepare", w, order);
        if (format == WeightFormat::int8) {
            return std::make_unique<QuantisedWeight>(w, order, size);
        }
        if (w.count() > 0 && library_.multiplies(w.dtype) && !strips_are_faster(size, w.dtype)) {
            return std::make_unique<OnednnWeight>(size, w.dtype, library_.pack(w, order, size));
        }
        return std::make_unique<OnednnWeight>(size, w.dtype, pack_strips(w, order, size));
    }

    void matmul(ConstView x, const Weight& w, View y) const override {
        const Weight* weight = &w;
        matmul_parts(x, {&weight, 1}, {&y, 1});
    }

    void matmul_parts(ConstView x, std::span<const Weight* const> ws, std::span<const View> ys) const override {
        check_parts(ws, ys);
        std::vector<StripPart> strips;
        std::vector<ProductPart> blocks;
        std::vector<ProductPart> plain;
        MatmulShape shape;
        for (std::size_t i = 0; i < ws.size(); ++i) {
            if (add_quantised(x, *ws[i], ys[i], shape, strips)) {
                continue;
            }
            shape = check_matmul(x, ws[i]->outputs(), ws[i]->inputs(), ws[i]->dtype(), ys[i]);
            const OnednnWeight& weight = own_weight(*ws[i]);
            const onednn::PackedWeight* packed = weight.packed();
            if (packed == nullptr) {
                strips.push_back({{weight.strips(), weight.dtype()}, shape.n, ys[i]});
            } else if (shape.m > small_rows || (shape.m > 0 && packed->packing() == onednn::Packing::other)) {
                library_.matmul(x, *packed, shape, ys[i]);
            } else {
                std::vector<ProductPart>& few = packed->packing() == onednn::Packing::blocks ? blocks : plain;
                few.push_back({packed->data(), shape.n, ys[i]});
            }
        }
        multiply_strips(x, shape, strips);
        multiply_few_blocks(x, shape, blocks);
        multiply_few(x, shape, plain);
    }

    void matmul_plain(ConstView x, ConstView w, WeightOrder order, View y) const override {
        const WeightSize size = check_weight("matmul", w, order);
        const MatmulShape shape = check_matmul(x, size.outputs, size.inputs, w.dtype, y);
        // Few rows are read faster by our own loops.
        if (w.count() > 0 && shape.m > small_rows && library_.multiplies(w.dtype)) {
            library_.matmul_plain(x, w, order, shape, y);
        } else if (order == WeightOrder::in_out) {
            const PanelGroup all{w.data, 0, shape.m};
            multiply_panels(x, {&all, 1}, size, y);
        } else {
            ReferenceKernels::matmul_plain(x, w, order, y);
        }
    }

    void grouped_matmul(ConstView x, ConstView w, WeightOrder order, std::span<const std::int64_t> first_rows,
                        View y) const override {
        if (order == WeightOrder::out_in) {
            ReferenceKernels::grouped_matmul(x, w, order, first_rows, y);
            return;
        }
        const WeightSize size = check_groups(x, w, order, first_rows, y);
        const std::int64_t bytes = size.outputs * size.inputs * tensor::size_of(w.dtype);
        std::vector<PanelGroup> groups;
        for (std::size_t g = 0; g + 1 < first_rows.size(); ++g) {
            groups.push_back({w.data + std::ssize(groups) * bytes, first_rows[g], first_rows[g + 1]});
        }
        multiply_panels(x, groups, size, y);
    }

private:
    bool strips_are_faster(WeightSize size, DType dtype) const {
        return group_functions().name != "baseline" && library_.packing(size, dtype) == onednn::Packing::plain;
    }

    static const OnednnWeight& own_weight(const Weight& w) {
        const auto* weight = dynamic_cast<const OnednnWeight*>(&w);
        if (weight == nullptr) {
            reject("matmul", "the weight was prepared by another set of kernels");
        }
        return *weight;
    }

    /// Keeps primitives; calling a kernel changes nothing else.
    mutable Library library_;
};

}  // namespace

std::unique_ptr<Kernels> make_onednn_kernels() {
    return std::make_unique<OnednnKernels>();
}

}  // namespace shardplan::kernels
