#include "comm/ordered_reduce.h"

#include <fmt/format.h>

#include <stdexcept>

namespace shardplan::comm {

using tensor::DType;

bool can_reduce(Reduction reduction, DType dtype) {
    return available_reduce_kernels().front().find(reduction, dtype) != nullptr;
}

void ordered_reduce(Reduction reduction, DType dtype, std::span<const std::byte* const> sources, std::int64_t count,
                    std::byte* out) {
    const ReduceKernels::Kernel kernel = available_reduce_kernels().front().find(reduction, dtype);
    if (kernel == nullptr) {
        throw std::runtime_error(fmt::format("no {} of {} elements between ranks",
                                             reduction == Reduction::sum ? "sum" : "maximum",
                                             tensor::to_string(dtype)));
    }
    if (sources.empty()) {
        throw std::runtime_error("a reduction of nothing");
    }
    kernel(sources, count, out);
}

void ordered_reduce(Reduction reduction, DType dtype, const std::byte* blocks, std::int64_t n, std::int64_t count,
                    std::byte* out) {
    std::vector<const std::byte*> sources;
    for (std::int64_t b = 0; b < n; ++b) {
        sources.push_back(blocks + b * count * tensor::size_of(dtype));
    }
    ordered_reduce(reduction, dtype, sources, count, out);
}

}  // namespace shardplan::comm
