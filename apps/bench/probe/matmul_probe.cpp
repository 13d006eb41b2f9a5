#include <omp.h>

#include <algorithm>
#include <chrono>
#include <dnnl.hpp>
#include <memory>

#include "probes.h"

namespace shardplan::bench {
namespace {

using Tag = dnnl::memory::format_tag;
using Type = dnnl::memory::data_type;
using Clock = std::chrono::steady_clock;

dnnl::matmul::primitive_desc describe(const dnnl::engine& engine, const MatmulShape& shape, Type type,
                                      Tag weights = Tag::any) {
    const dnnl::memory::desc x({shape.m, shape.k}, type, Tag::ab);
    const dnnl::memory::desc w({shape.k, shape.n}, type, weights);
    const dnnl::memory::desc y({shape.m, shape.n}, type, Tag::ab);
#if DNNL_VERSION_MAJOR < 3
    return {dnnl::matmul::desc(x, w, y), engine};
#else
    return {engine, x, w, y};
#endif
}

/// One product with memory of its own, all ones.
class Product {
public:
    Product(const dnnl::engine& engine, dnnl::stream& stream, const MatmulShape& shape, Type type, Tag weights)
        : description_(describe(engine, shape, type, weights)),
          matmul_(description_),
          x_(filled(engine, stream, description_.src_desc(), shape.m, shape.k)),
          w_(filled(engine, stream, description_.weights_desc(), shape.k, shape.n)),
          y_(description_.dst_desc(), engine) {}

    void run(dnnl::stream& stream) {
        matmul_.execute(stream, {{DNNL_ARG_SRC, x_}, {DNNL_ARG_WEIGHTS, w_}, {DNNL_ARG_DST, y_}});
    }

private:
    static dnnl::memory filled(const dnnl::engine& engine, dnnl::stream& stream, const dnnl::memory::desc& description,
                               std::int64_t rows, std::int64_t columns) {
        dnnl::memory plain({{rows, columns}, Type::f32, Tag::ab}, engine);
        std::fill_n(static_cast<float*>(plain.get_data_handle()), rows * columns, 1.0F);
        dnnl::memory result(description, engine);
        dnnl::reorder(plain, result).execute(stream, plain, result);
        stream.wait();
        return result;
    }

    dnnl::matmul::primitive_desc description_;
    dnnl::matmul matmul_;
    dnnl::memory x_, w_, y_;
};

}  // namespace

bool bf16_supported() {
    try {
        const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
        describe(engine, {16, 64, 64}, Type::bf16);
        return true;
    } catch (const dnnl::error&) {
        return false;
    }
}

static double seconds_with(Tag weights, const std::vector<MatmulShape>& shapes, bool bf16, double seconds) {
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    dnnl::stream stream(engine);
    std::vector<std::unique_ptr<Product>> products;
    for (const MatmulShape& shape : shapes) {
        products.push_back(std::make_unique<Product>(engine, stream, shape, bf16 ? Type::bf16 : Type::f32, weights));
    }
    std::vector<double> times;
    const auto begin = Clock::now();
    double passed = 0.0;
    for (int pass = -1; pass < 5 || passed < seconds; ++pass) {
        const auto start = Clock::now();
        for (const auto& product : products) {
            product->run(stream);
        }
        stream.wait();
        if (pass >= 0) {  // the first one warms up
            times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
        }
        passed = std::chrono::duration<double>(Clock::now() - begin).count();
    }
    return median(times);
}

double matmul_seconds(const std::vector<MatmulShape>& shapes, bool bf16, int threads, double seconds) {
    omp_set_num_threads(threads);
    // Without packed layouts (before AVX-512) the library's own choice is not the faster one of the two plain ones.
    double best = seconds_with(Tag::any, shapes, bf16, seconds / 2);
    best = std::min(best, seconds_with(Tag::ba, shapes, bf16, seconds / 2));
    return best;
}

}  // namespace shardplan::bench
