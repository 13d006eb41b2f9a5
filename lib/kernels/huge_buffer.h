// Memory that large pages may back: reading a weight once per token is limited by the memory, and the translation of
// small pages costs a tenth of its speed and more. Knows nothing of what it holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace shardplan::kernels {

/// Owns `bytes` of memory, aligned to a cache line, to a large page where it is at least one. Not initialised.
class HugeBuffer {
public:
    HugeBuffer() = default;
    explicit HugeBuffer(std::int64_t bytes);  ///< throws std::bad_alloc

    std::byte* data() const { return data_.get(); }
    std::int64_t bytes() const { return bytes_; }

private:
    struct Free {
        void operator()(std::byte* data) const;
    };
    std::unique_ptr<std::byte, Free> data_;
    std::int64_t bytes_ = 0;
};

}  // namespace shardplan::kernels
