#include "comm/blocks.h"

#include <doctest/doctest.h>

#include "tensors.h"

using namespace shardplan;
using tensor::DType;
using tensor::Shape;
using test::Tensor;

namespace {

Tensor numbered(DType dtype, const Shape& shape, int dim = 0, std::int64_t offset = 0) {
    return test::generate(dtype, shape, [&](const Shape& index) {
        return test::hash_of(1, offset == 0 ? index : test::shifted(index, dim, offset));
    });
}

struct Case {
    Shape shape;
    int dim;
    std::int64_t n;
    bool contiguous;
};

const std::vector<Case> cases = {
    {{6}, 0, 3, true},           {{6, 4}, 0, 2, true},        {{6, 4}, 1, 2, false},    {{6, 4}, 1, 4, false},
    {{1, 4, 3}, 1, 4, true},     {{1, 1, 8}, 2, 8, true},     {{2, 1, 8}, 2, 4, false}, {{2, 3, 4, 5}, 2, 2, false},
    {{2, 3, 4, 5}, 3, 5, false}, {{2, 3, 4, 5}, 1, 1, false}, {{3, 0, 4}, 2, 2, false}, {{3, 0, 4}, 1, 7, false},
    {{0, 4}, 1, 2, false},
};

}  // namespace

TEST_CASE("packed blocks are the tensor's own values in order, and unpacking restores them") {
    for (const DType dtype : {DType::u8, DType::bf16, DType::f32, DType::i64}) {
        for (const Case& c : cases) {
            CAPTURE(tensor::to_string(c.shape));
            CAPTURE(c.dim);
            Tensor whole = numbered(dtype, c.shape);
            Tensor packed(dtype, c.shape);
            comm::pack_blocks(whole.view(), c.dim, c.n, packed.bytes.data());

            Shape block_shape = c.shape;
            std::int64_t& size = block_shape[static_cast<std::size_t>(c.dim)];
            size /= c.n;
            std::vector<std::byte> expected;
            for (std::int64_t i = 0; i < c.n; ++i) {
                const Tensor block = numbered(dtype, block_shape, c.dim, i * size);
                expected.insert(expected.end(), block.bytes.begin(), block.bytes.end());
            }
            CHECK(packed.bytes == expected);

            Tensor restored(dtype, c.shape);
            comm::unpack_blocks(packed.bytes.data(), c.dim, c.n, restored.view());
            CHECK(restored == whole);
        }
    }
}

TEST_CASE("blocks are contiguous exactly when packing changes nothing") {
    for (const Case& c : cases) {
        CAPTURE(tensor::to_string(c.shape));
        CHECK(comm::blocks_are_contiguous(c.shape, c.dim) == c.contiguous);
    }
}

TEST_CASE("a block of any interval") {
    Tensor whole = numbered(DType::f32, {3, 7, 2});
    for (std::int64_t begin = 0; begin <= 7; ++begin) {
        for (std::int64_t end = begin; end <= 7; ++end) {
            CAPTURE(begin);
            CAPTURE(end);
            const Tensor expected = numbered(DType::f32, {3, end - begin, 2}, 1, begin);
            Tensor packed(DType::f32, expected.shape);
            comm::pack_block(whole.view(), 1, {begin, end}, packed.bytes.data());
            CHECK(packed == expected);

            // Elements outside of the interval stay as they are.
            Tensor target(DType::f32, whole.shape);
            comm::unpack_block(packed.bytes.data(), 1, {begin, end}, target.view());
            const Tensor masked = test::generate(DType::f32, whole.shape, [&](const Shape& index) {
                return index[1] >= begin && index[1] < end ? test::hash_of(1, index) : 0;
            });
            CHECK(target == masked);
        }
    }
}
