// Weights prepared in format int8: both implementations, all orders and dtypes, what they occupy, how far they are off.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/kernels.h"
#include "kernels/tensors.h"

namespace shardplan::kernels {
namespace {

using test::DType;
using test::Tensor;

TEST_CASE("int8: a product is off by at most half a scale for each input; one row has the bits of many") {
    for (const KernelSet set : {KernelSet::reference, KernelSet::onednn}) {
        const auto kernels = make_kernels(set);
        for (const DType dtype : {DType::f32, DType::bf16}) {
            for (const auto& [m, n, k] : {std::array{1, 48, 32}, {5, 65, 33}, {20, 70, 100}, {3, 0, 4}, {0, 4, 4}}) {
                CAPTURE(to_string(set));
                CAPTURE(m);
                CAPTURE(n);
                CAPTURE(k);
                const Tensor x = test::random_tensor(1, {m, k}, dtype);
                const Tensor w = test::random_tensor(2, {n, k}, dtype);
                const auto weight = kernels->prepare(w, WeightOrder::out_in, WeightFormat::int8);
                CHECK(weight->dtype() == DType::i8);
                CHECK(weight->packed_bytes() >= n * k + 4 * n);
                CHECK(weight->packed_bytes() <= (n + 63) / 64 * 64 * k + 4 * n);
                Tensor y({m, n});
                kernels->matmul(x, *weight, y);
                bool any = false;
                for (int i = 0; i < m * n; ++i) {
                    double sum = 0.0;
                    double inputs = 0.0;
                    double most = 0.0;
                    for (int j = 0; j < k; ++j) {
                        sum += x[i / n * k + j] * w[i % n * k + j];
                        inputs += std::abs(x[i / n * k + j]);
                        most = std::max(most, std::abs(w[i % n * k + j]));
                    }
                    CHECK(std::abs(y[i] - sum) <= inputs * most / 254.0 * 1.001 + 1e-5);
                    any = any || std::abs(y[i] - sum) > 1e-4;
                }
                CHECK((any || m * n == 0));
                if (m > 0) {
                    Tensor one({1, n});
                    kernels->matmul(test::slice(x, 0, {m - 1, m}), *weight, one);
                    CHECK(one == test::slice(y, 0, {m - 1, m}));
                }
            }
        }
    }
}

TEST_CASE("int8: several weights in one pass give the bits of each alone") {
    for (const KernelSet set : {KernelSet::reference, KernelSet::onednn}) {
        const auto kernels = make_kernels(set);
        for (const int m : {0, 1, 8, 9, 130}) {
            CAPTURE(m);
            const Tensor x = test::random_tensor(1, {m, 300}, DType::bf16);
            const int widths[] = {96, 0, 17, 64};
            std::vector<std::unique_ptr<Weight>> weights;
            std::vector<Tensor> alone;
            std::vector<Tensor> together;
            for (const int n : widths) {
                const Tensor w = test::random_tensor(static_cast<std::uint64_t>(n) + 2, {n, 300}, DType::bf16);
                weights.push_back(kernels->prepare(w, WeightOrder::out_in, WeightFormat::int8));
                kernels->matmul(x, *weights.back(), alone.emplace_back(tensor::Shape{m, n}));
                together.emplace_back(tensor::Shape{m, n});
            }
            std::vector<const Weight*> ws;
            std::vector<View> ys;
            for (std::size_t i = 0; i < weights.size(); ++i) {
                ws.push_back(weights[i].get());
                ys.push_back(together[i]);
            }
            kernels->matmul_parts(x, ws, ys);
            for (std::size_t i = 0; i < weights.size(); ++i) {
                CHECK(together[i] == alone[i]);
            }
        }
    }
}

TEST_CASE("int8: [in, out] weights give the same bits, and a weight of zeros gives zeros") {
    for (const KernelSet set : {KernelSet::reference, KernelSet::onednn}) {
        const auto kernels = make_kernels(set);
        const Tensor x = test::random_tensor(1, {3, 40});
        const Tensor w = test::random_tensor(2, {70, 40});
        Tensor turned({40, 70});
        for (int i = 0; i < 70 * 40; ++i) {
            turned.set(i % 40 * 70 + i / 40, w[i]);
        }
        Tensor a({3, 70});
        Tensor b({3, 70});
        kernels->matmul(x, *kernels->prepare(w, WeightOrder::out_in, WeightFormat::int8), a);
        kernels->matmul(x, *kernels->prepare(turned, WeightOrder::in_out, WeightFormat::int8), b);
        CHECK(a == b);
        kernels->matmul(x, *kernels->prepare(Tensor({70, 40}), WeightOrder::out_in, WeightFormat::int8), a);
        CHECK(a == Tensor({3, 70}));
        CHECK_THROWS_AS(kernels->matmul(test::random_tensor(1, {3, 41}),
                                        *kernels->prepare(w, WeightOrder::out_in, WeightFormat::int8), a),
                        std::invalid_argument);
    }
}

TEST_CASE("int8: what is no number stays none, in its channel only") {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        const auto kernels = make_kernels(KernelSet::onednn);
        for (const int m : {1, 12}) {
            const Tensor x = test::random_tensor(1, {m, 40});
            Tensor w = test::random_tensor(2, {20, 40});
            w.set(3 * 40 + 7, bad);
            Tensor y({m, 20});
            kernels->matmul(x, *kernels->prepare(w, WeightOrder::out_in, WeightFormat::int8), y);
            for (int i = 0; i < m * 20; ++i) {
                CHECK(std::isnan(y[i]) == (i % 20 == 3));
            }
        }
    }
}

}  // namespace
}  // namespace shardplan::kernels
