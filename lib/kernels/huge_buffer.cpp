#include "kernels/huge_buffer.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace shardplan::kernels {
namespace {

constexpr std::int64_t line = 64;
constexpr std::int64_t large_page = std::int64_t{2} << 20;

}  // namespace

HugeBuffer::HugeBuffer(std::int64_t bytes) : bytes_(bytes) {
    if (bytes == 0) {
        return;
    }
    const std::int64_t unit = bytes < large_page ? line : large_page;
    const auto size = static_cast<std::size_t>((bytes + unit - 1) / unit * unit);
    void* memory = std::aligned_alloc(static_cast<std::size_t>(unit), size);
    if (memory == nullptr) {
        throw std::bad_alloc();
    }
    data_.reset(static_cast<std::byte*>(memory));
#ifdef MADV_HUGEPAGE
    if (unit == large_page) {
        // Only whole pages: what lies behind the last one stays small, so that no more is resident than was asked for.
        // A refusal costs speed and nothing else.
        static_cast<void>(madvise(memory, static_cast<std::size_t>(bytes / large_page * large_page), MADV_HUGEPAGE));
    }
#endif
}

void HugeBuffer::Free::operator()(std::byte* data) const {
    std::free(data);
}

}  // namespace shardplan::kernels
