#include "kernels/reference/packed_rows.h"

#include <algorithm>

#include "kernels/huge_buffer.h"
#include "kernels/reference/elements.h"
#include "kernels/reference/row_groups.h"
#include "kernels/reference/threads.h"

namespace shardplan::kernels {
namespace {

using base::Interval;

float* room_for(std::int64_t count) {
    thread_local HugeBuffer room;
    const std::int64_t bytes = count * static_cast<std::int64_t>(sizeof(float));
    if (room.bytes() < bytes) {
        room = HugeBuffer();
        room = HugeBuffer(bytes);
    }
    return reinterpret_cast<float*>(room.data());
}

/// to[k, i] = row i of the rows, for one piece of k.
void pack(const ConstView& x, std::int64_t stride, Interval rows, Interval k, float* to) {
    const TileShape shape{rows.size(), 0, k.size()};
    if (x.dtype == tensor::DType::f32) {
        group_functions().pack({x.as<float>() + rows.begin * stride + k.begin, stride}, to, shape);
        return;
    }
    float wide[16 * PackedRows::piece];
    for (std::int64_t i = 0; i < rows.size(); ++i) {
        load_floats(x, (rows.begin + i) * stride + k.begin, k.size(), wide + i * k.size());
    }
    group_functions().pack({wide, k.size()}, to, shape);
}

}  // namespace

std::int64_t PackedRows::chunks(std::int64_t m, std::int64_t k) {
    constexpr std::int64_t most_values = std::int64_t{2} << 20;  // 8 MB for a thread and its others
    const std::int64_t rows = std::clamp(most_values / std::max<std::int64_t>(1, k), most_rows / 2, most_rows);
    return (m + rows - 1) / rows;
}

PackedRows::PackedRows(const ConstView& x, Interval rows, std::int64_t k)
    : count_(rows.size()),
      groups_((rows.size() + group_functions().rows - 1) / group_functions().rows),
      data_(room_for(rows.size() * k)) {
    const std::int64_t pieces = (k + piece - 1) / piece;
#pragma omp parallel for collapse(2) schedule(static) if (worth_threads(count_ * k))
    for (std::int64_t i = 0; i < pieces; ++i) {
        for (std::int64_t g = 0; g < groups_; ++g) {
            const Interval part{i * piece, std::min(k, (i + 1) * piece)};
            const Interval own = group(g);
            pack(x, k, {rows.begin + own.begin, rows.begin + own.end}, part, data_ + (values(g, part) - data_));
        }
    }
}

}  // namespace shardplan::kernels
