// The pair of collectives around the local work between two layers, as one call.
#include <doctest/doctest.h>

#include "scenes.h"

using namespace shardplan;
using mesh::CollectiveKind;
using tensor::DType;
using tensor::Shape;
using test::Bits;
using test::Random;
using test::Scene;
using test::Staging;
using test::Tensor;

TEST_CASE("reduce_scatter_gather is a reduce-scatter, local work and an all-gather") {
    Random random(41);
    for (int round = 0; round < 30; ++round) {
        const Scene scene(random, test::mpi_world());
        CAPTURE(scene.text);
        for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
            const DType gathered = random.below(3) == 0 ? DType::i32 : dtype;  // the work may change the type
            const auto worked = [&](Bits bits) {
                return static_cast<Bits>(gathered == dtype ? bits ^ 1U : bits & 0xffU);
            };
            Tensor partial =
                scene.block(dtype, test::grown(scene.shape, scene.dim, scene.n), scene.dim, 0, scene.position);
            Tensor reduced(dtype, scene.shape);
            Tensor source(gathered, scene.shape);
            Tensor out(gathered, partial.shape);
            Staging scattering(CollectiveKind::reduce_scatter, scene.n, partial, reduced);
            Staging gathering(CollectiveKind::all_gather, scene.n, source, out);
            Staging& staging = scattering.span().size() > gathering.span().size() ? scattering : gathering;

            int calls = 0;
            const auto between = [&] {
                ++calls;
                CHECK(reduced == test::generate(dtype, scene.shape, [&](const Shape& index) {
                          const std::int64_t offset = scene.position * scene.size(scene.dim);
                          return test::ordered_sum(scene, dtype, test::shifted(index, scene.dim, offset));
                      }));
                const auto from = static_cast<std::size_t>(tensor::size_of(dtype));
                const auto to = static_cast<std::size_t>(tensor::size_of(gathered));
                for (std::size_t i = 0; i * to < source.bytes.size(); ++i) {
                    Bits bits = 0;
                    std::memcpy(&bits, reduced.bytes.data() + i * from, from);
                    bits = worked(bits);
                    std::memcpy(source.bytes.data() + i * to, &bits, to);
                }
            };
            scene.groups->reduce_scatter_gather(scene.axes, scene.dim, partial.view(), reduced.view(), between,
                                                source.view(), out.view(), staging.span());
            CHECK(calls == 1);
            CHECK(staging.intact());
            CHECK(out == test::generate(gathered, out.shape, [&](const Shape& index) {
                      return worked(test::ordered_sum(scene, dtype, index));
                  }));
            const comm::TrafficTable both = scene.groups->traffic();
            test::check_traffic(scene, CollectiveKind::reduce_scatter, std::ssize(partial.bytes));
            const auto gather = both[static_cast<std::size_t>(CollectiveKind::all_gather)];
            CHECK(gather.calls == (scene.n > 1 ? 1 : 0));
            CHECK(gather.wire_bytes == (scene.n - 1) * std::ssize(source.bytes));
            CHECK(gather.payload_bytes == (scene.n > 1 ? std::ssize(source.bytes) : 0));
        }
    }
}
