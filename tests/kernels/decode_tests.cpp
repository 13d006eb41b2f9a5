#include <doctest/doctest.h>
#include <omp.h>

#include <array>

#include "kernels/kernels.h"
#include "kernels/reference/decode_tiles.h"
#include "kernels/tensors.h"

namespace shardplan::kernels {
namespace {

using test::DType;
using test::Tensor;

/// Rows of x as the decode tiles want them.
std::vector<float> arranged(const DecodeFunctions& functions, const Tensor& x, std::int64_t width, DType dtype) {
    std::vector<float> result(static_cast<std::size_t>(x.count() / width * functions.padded(width)));
    for (std::int64_t i = 0; i < x.count(); ++i) {
        const std::int64_t place = i / width * functions.padded(width) + functions.place(i % width, dtype);
        result[static_cast<std::size_t>(place)] = static_cast<float>(x[i]);
    }
    return result;
}

// Every instruction set this machine has.
TEST_CASE("decode tiles: scores and values of all sizes around the vector lengths") {
    for (const DecodeFunctions& functions : available_decode_functions()) {
        for (const DType dtype : {DType::f32, DType::bf16}) {
            for (const std::int64_t heads : {1, 2, 3, 4, 7}) {
                for (const std::int64_t keys : {1, 2, 5, 19}) {
                    for (const std::int64_t width : {1, 16, 37, 64, 80}) {
                        CAPTURE(std::string(functions.name));
                        const Tensor q = test::random_tensor(1, {heads, width});
                        const Tensor k = test::random_tensor(2, {keys, width}, dtype);
                        Tensor scores({heads, keys}), expected({heads, keys}), sums({heads, width});
                        for (std::int64_t i = 0; i < heads * keys * width; ++i) {
                            const std::int64_t h = i / width / keys, j = i / width % keys, c = i % width;
                            expected.set(h * keys + j, expected[h * keys + j] + q.at({h, c}) * k.at({j, c}));
                        }
                        const std::int64_t padded = functions.padded(width);
                        const std::vector<float> rows = arranged(functions, q, width, dtype);
                        std::vector<float> out(rows.size());
                        float* weights = scores.view().as<float>();
                        const char* ahead = reinterpret_cast<const char*>(rows.data());
                        if (dtype == DType::f32) {
                            const Matrix<const float> data{k.view().as<float>(), width};
                            functions.scores_f32({rows.data(), padded}, data, {weights, keys}, {heads, keys, width},
                                                 ahead);
                            functions.values_f32({weights, keys}, data, {out.data(), padded}, {heads, width, keys},
                                                 ahead);
                        } else {
                            const Matrix<const std::uint16_t> data{k.view().as<std::uint16_t>(), width};
                            functions.scores_bf16({rows.data(), padded}, data, {weights, keys}, {heads, keys, width},
                                                  ahead);
                            functions.values_bf16({weights, keys}, data, {out.data(), padded}, {heads, width, keys},
                                                  ahead);
                        }
                        CHECK(test::difference(scores, expected, 2e-5) == "");
                        for (std::int64_t i = 0; i < heads * keys * width; ++i) {
                            const std::int64_t h = i / width / keys, j = i / width % keys, c = i % width;
                            sums.set(h * width + c, sums[h * width + c] + scores.at({h, j}) * k.at({j, c}));
                        }
                        Tensor values({heads, width});
                        for (std::int64_t i = 0; i < heads * width; ++i) {
                            const std::int64_t place = i / width * padded + functions.place(i % width, dtype);
                            values.set(i, out[static_cast<std::size_t>(place)]);
                        }
                        CHECK(test::difference(values, sums, 5e-5) == "");
                    }
                }
            }
        }
    }
}

TEST_CASE("a decode's attention and packed products do not depend on the number of threads") {
    const int before = omp_get_max_threads();
    for (const KernelSet set : {KernelSet::reference, KernelSet::onednn}) {
        const auto kernels = make_kernels(set);
        for (const DType dtype : {DType::f32, DType::bf16}) {
            const Tensor q = test::random_tensor(1, {1, 1, 8, 64}, dtype);
            const Tensor k = test::random_tensor(2, {1, 700, 2, 64}, dtype);
            const Tensor v = test::random_tensor(3, {1, 700, 2, 64}, dtype);
            const Tensor w = test::random_tensor(4, {192, 512}, dtype);
            const auto packed = kernels->prepare(w, WeightOrder::out_in);
            const Tensor x = test::random_tensor(5, {3, 512}, dtype);
            const std::array<std::int64_t, 1> start = {699}, valid = {700};
            const AttentionParams params{.scale = 0.1F, .q_start = start, .k_valid = valid, .queries_per_kv = 4};
            std::vector<Tensor> results;
            for (const int threads : {1, 2, 3, 5}) {
                omp_set_num_threads(threads);
                Tensor y({1, 1, 8, 64}, dtype), z({3, 192}, dtype);
                kernels->attention(q, k, v, params, y);
                kernels->matmul(x, *packed, z);
                results.push_back(y);
                results.push_back(z);
                CHECK(y == results[0]);
                CHECK(z == results[1]);
            }
        }
    }
    omp_set_num_threads(before);
}

}  // namespace
}  // namespace shardplan::kernels
