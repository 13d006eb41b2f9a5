#include <algorithm>
#include <vector>

#include "kernels/checks.h"
#include "kernels/reference/elements.h"
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
#pragma omp parallel if (worth_threads(tokens * width))
    {
        std::vector<float> values(static_cast<std::size_t>(width));
#pragma omp for schedule(static)
        for (std::int64_t t = 0; t < tokens; ++t) {
            const std::int64_t row = ids.as<std::int32_t>()[t] - first_row;
            if (row < 0 || row >= table.shape[0]) {
                std::fill(values.begin(), values.end(), 0.0F);
            } else {
                load_floats(table, row * width, width, values.data());
                for (float& value : values) {
                    value *= scale;
                }
            }
            store_floats(values.data(), width, y, t * width);
        }
    }
}

}  // namespace shardplan::kernels
