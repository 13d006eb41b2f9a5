#include <algorithm>
#include <cstring>

#include "kernels/checks.h"
#include "kernels/reference/reference_kernels.h"

namespace shardplan::kernels {

void ReferenceKernels::write_cache(ConstView k, std::span<const std::int64_t> first, std::int64_t cache_start,
                                   View cache) const {
    check_rank("write_cache", "k", k.shape, 4);
    check_rank("write_cache", "cache", cache.shape, 4);
    check_shape("write_cache", "cache", cache.shape, {k.shape[0], cache.shape[1], k.shape[2], k.shape[3]});
    check_dtype("write_cache", "cache", cache.dtype, k.dtype);
    check_length("write_cache", "first", first.size(), k.shape[0]);
    const std::int64_t row_bytes = k.shape[2] * k.shape[3] * tensor::size_of(k.dtype);
    for (std::int64_t b = 0; b < k.shape[0] && row_bytes > 0; ++b) {
        const std::int64_t shift = first[static_cast<std::size_t>(b)] - cache_start;
        const std::int64_t begin = std::max<std::int64_t>(0, -shift);
        const std::int64_t end = std::min(k.shape[1], cache.shape[1] - shift);
        if (begin < end) {
            std::memcpy(cache.data + (b * cache.shape[1] + shift + begin) * row_bytes,
                        k.data + (b * k.shape[1] + begin) * row_bytes,
                        static_cast<std::size_t>((end - begin) * row_bytes));
        }
    }
}

}  // namespace shardplan::kernels
