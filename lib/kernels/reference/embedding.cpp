#include <algorithm>
#include <vector>

#include "kernels/checks.h"
#include "kernels/reference/element_loops.h"
#include "kernels/reference/reference_kernels.h"
#include "kernels/reference/threads.h"

namespace shardplan::kernels {

void ReferenceKernels::embedding(ConstView ids, ConstView table, std::int64_t first_row, float scale, View y) const {
    check_dtype("embedding", "ids", ids.dtype, tensor::DType::i32);
    check_rank("embedding", "table", table.shape, 2);
    check_float("embedding", "table", table.dtype);
    check_dtype("embedding", "y", y.dtype, table.dtype);
    const std::int64_t width = table.shape[1];
    tensor::Shape wanted = ids.shape;
    wanted.push_back(width);
    check_shape("embedding", "y", y.shape, wanted);
    const std::int64_t tokens = ids.count();
    const auto copy_all = [&]<typename T>(const T* rows, T* to) {
#pragma omp parallel for schedule(static) if (worth_threads(tokens * width))
        for (std::int64_t t = 0; t < tokens; ++t) {
            const std::int64_t row = ids.as<std::int32_t>()[t] - first_row;
            if (row < 0 || row >= table.shape[0]) {
                std::fill_n(to + t * width, width, T{});
            } else if (scale == 1.0F) {
                std::copy_n(rows + row * width, width, to + t * width);
            } else {
                element_functions<T>().map(Map::scale, scale, rows + row * width, width, to + t * width);
            }
        }
    };
    table.dtype == tensor::DType::f32 ? copy_all(table.as<float>(), y.as<float>())
                                      : copy_all(table.as<std::uint16_t>(), y.as<std::uint16_t>());
}

}  // namespace shardplan::kernels
