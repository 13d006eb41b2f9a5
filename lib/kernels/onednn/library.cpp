#include "kernels/onednn/library.h"

#include <fmt/format.h>
#include <omp.h>

#include <dnnl.hpp>
#include <map>
#include <stdexcept>

#include "kernels/onednn/api.h"
#include "kernels/reference/threads.h"

namespace shardplan::kernels::onednn {
namespace {

using tensor::DType;

/// Rows of x for which a weight is packed. The layout oneDNN chooses does not depend on it (2.6.3, AVX-512).
constexpr std::int64_t packing_rows = 128;

dnnl::memory::data_type type_of(DType dtype) {
    return dtype == DType::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

Layout layout_of(WeightOrder order) {
    return order == WeightOrder::out_in ? Layout::column_major : Layout::row_major;
}

/// oneDNN's memory takes a mutable pointer also where it only reads.
void* mutable_data(const std::byte* data) {
    return const_cast<std::byte*>(data);
}

/// A product of one shape, with the descriptions of its three matrices.
struct Product {
    dnnl::matmul::primitive_desc desc;
    dnnl::matmul primitive;
    Packing packing = Packing::other;  ///< of the weight
};

struct ProductKey {
    MatmulShape shape;
    DType in = DType::f32;
    DType out = DType::f32;
    Layout layout = Layout::library;
    friend auto operator<=>(const ProductKey&, const ProductKey&) = default;
};

/// The product whose layout all weights of a size have.
ProductKey packing_key(WeightSize size, DType dtype) {
    return {{packing_rows, size.outputs, size.inputs}, dtype, dtype, Layout::library};
}

const char* isa_name() {
    switch (dnnl::get_effective_cpu_isa()) {
        case dnnl::cpu_isa::sse41: return "SSE4.1";
        case dnnl::cpu_isa::avx: return "AVX";
        case dnnl::cpu_isa::avx2: return "AVX2";
        case dnnl::cpu_isa::avx512_core: return "AVX-512";
        case dnnl::cpu_isa::avx512_core_vnni: return "AVX-512 VNNI";
        case dnnl::cpu_isa::avx512_core_bf16: return "AVX-512 BF16";
        case dnnl::cpu_isa::avx512_core_amx: return "AMX";
        default: return "other ISA";
    }
}

}  // namespace

struct Library::State {
    dnnl::engine engine{dnnl::engine::kind::cpu, 0};
    dnnl::stream stream{engine};
    std::map<ProductKey, Product> products;
    bool bf16 = false;

    /// nullptr where oneDNN has no implementation.
    const Product* product(const ProductKey& key) {
        const auto found = products.find(key);
        if (found != products.end()) {
            return &found->second;
        }
        const auto& [m, n, k] = key.shape;
        const MatrixDesc weight{k, n, key.in, key.layout};
        dnnl_primitive_desc* handle =
            create_matmul(engine.get(), {m, k, key.in, Layout::row_major}, weight, {m, n, key.out, Layout::row_major});
        if (handle == nullptr) {
            return nullptr;
        }
        const Packing packing = weight_packing(handle, weight);
        const dnnl::matmul::primitive_desc desc(handle);
        return &products.emplace(key, Product{desc, dnnl::matmul(desc), packing}).first->second;
    }

    const Product& required_product(const ProductKey& key) {
        const Product* found = product(key);
        if (found == nullptr) {
            throw std::runtime_error(fmt::format("oneDNN has no matmul {} x {} x {} of {} into {} on this machine",
                                                 key.shape.m, key.shape.n, key.shape.k, to_string(key.in),
                                                 to_string(key.out)));
        }
        return *found;
    }

    void run(const Product& product, const ConstView& x, const dnnl::memory& w, const View& y) {
        dnnl::memory source(product.desc.src_desc(), engine, mutable_data(x.data));
        dnnl::memory target(product.desc.dst_desc(), engine, y.data);
        product.primitive.execute(stream, {{DNNL_ARG_SRC, source}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, target}});
        stream.wait();
    }

    void reorder(dnnl::memory from, dnnl::memory to) {
        dnnl::reorder(from, to).execute(stream, from, to);
        stream.wait();
    }
};

/// While it lives, the library starts no threads, if `alone`. It must cover creation as well as execution: oneDNN fixes
/// the number of threads when it creates a primitive.
class OneThread {
public:
    explicit OneThread(bool alone) : before_(omp_get_max_threads()) {
        if (alone) {
            omp_set_num_threads(1);
        }
    }
    ~OneThread() { omp_set_num_threads(before_); }
    OneThread(const OneThread&) = delete;
    OneThread& operator=(const OneThread&) = delete;

private:
    int before_;
};

/// Whether a product is too small to pay for waking the other threads.
bool too_small(const MatmulShape& shape) {
    constexpr std::int64_t work_per_element = 8;  // multiply-adds in the time of one element of other kernels
    return !worth_threads(shape.m * shape.n * shape.k / work_per_element);
}

Library::Library() : state_(std::make_unique<State>()) {
    dnnl::set_verbose(0);  // it would write to the standard output
    const MatmulShape probe{packing_rows, 64, 64};
    state_->bf16 = state_->product({probe, DType::bf16, DType::bf16, Layout::library}) != nullptr &&
                   state_->product({probe, DType::bf16, DType::f32, Layout::library}) != nullptr;
}

Library::~Library() = default;

std::string Library::describe() const {
    const dnnl_version_t* version = dnnl_version();
    return fmt::format("oneDNN {}.{}.{} ({})", version->major, version->minor, version->patch, isa_name());
}

bool Library::multiplies(DType dtype) const {
    return dtype == DType::f32 || (dtype == DType::bf16 && state_->bf16);
}

Packing Library::packing(WeightSize size, DType dtype) {
    return state_->required_product(packing_key(size, dtype)).packing;
}

std::unique_ptr<PackedWeight> Library::pack(const ConstView& w, WeightOrder order, WeightSize size) {
    const Product& product = state_->required_product(packing_key(size, w.dtype));
    if (product.packing == Packing::plain) {
        return std::make_unique<PackedWeight>(natural_copy(w, order, size), Packing::plain);
    }
    const dnnl::memory::desc wanted = product.desc.weights_desc();
    HugeBuffer data(static_cast<std::int64_t>(wanted.get_size()));
    const dnnl::memory::dims dims{size.inputs, size.outputs};
    const auto tag = order == WeightOrder::out_in ? dnnl::memory::format_tag::ba : dnnl::memory::format_tag::ab;
    state_->reorder({{dims, type_of(w.dtype), tag}, state_->engine, mutable_data(w.data)},
                    {wanted, state_->engine, data.data()});
    return std::make_unique<PackedWeight>(std::move(data), product.packing);
}

void Library::matmul(const ConstView& x, const PackedWeight& w, const MatmulShape& shape, const View& y) {
    if (w.packing() == Packing::plain) {
        matmul_plain(x, {w.data(), x.dtype, {shape.n, shape.k}}, WeightOrder::out_in, shape, y);
        return;
    }
    const OneThread threads(too_small(shape));
    const Product& product = state_->required_product({shape, x.dtype, y.dtype, Layout::library});
    const dnnl::memory::desc packed =
        state_->required_product(packing_key({shape.n, shape.k}, x.dtype)).desc.weights_desc();
    const dnnl::memory::desc wanted = product.desc.weights_desc();
    const dnnl::memory weight(packed, state_->engine, mutable_data(w.data()));
    if (packed == wanted) {
        state_->run(product, x, weight, y);
        return;
    }
    // Correct but slow where a version chooses other layouts for other numbers of rows.
    const dnnl::memory turned(wanted, state_->engine);
    state_->reorder(weight, turned);
    state_->run(product, x, turned, y);
}

void Library::matmul_plain(const ConstView& x, const ConstView& w, WeightOrder order, const MatmulShape& shape,
                           const View& y) {
    const OneThread threads(too_small(shape));
    const Product& product = state_->required_product({shape, x.dtype, y.dtype, layout_of(order)});
    const dnnl::memory weight(product.desc.weights_desc(), state_->engine, mutable_data(w.data));
    state_->run(product, x, weight, y);
}

}  // namespace shardplan::kernels::onednn
