// Owning buffers, aligned for vector units, and the Allocator that counts them: the bytes asked for, per category, now
// and at their highest. What a plan predicts is compared with these counts, so nothing that a plan does not know
// (padding, packed copies) goes into the first five categories; it is counted as scratch. Activations and communication
// are parts of the arena that are in use, counted apart.
// Large buffers are taken from the system page by page, in huge pages where it has them, and given back at once.
// Not for use by several threads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "tensor/view.h"

namespace shardplan::exec {

enum class Category : std::uint8_t { parameters, cache, activations, communication, arena, scratch };
inline constexpr std::size_t category_count = 6;

std::string_view to_string(Category category);

/// Most memory that this process has held at once (resident); 0 where the system does not say.
std::int64_t peak_resident_bytes();

/// Must outlive its buffers.
class Allocator {
public:
    /// poison: new buffers are filled with bytes that read as NaN, so that using what was never written shows.
    explicit Allocator(bool poison = false) : poison_(poison) {}
    Allocator(const Allocator&) = delete;
    Allocator& operator=(const Allocator&) = delete;

    bool poison() const { return poison_; }
    std::int64_t current(Category category) const { return current_[index(category)]; }
    std::int64_t peak(Category category) const { return peak_[index(category)]; }

    void add(Category category, std::int64_t bytes);
    void remove(Category category, std::int64_t bytes) { current_[index(category)] -= bytes; }

private:
    static std::size_t index(Category category) { return static_cast<std::size_t>(category); }
    std::array<std::int64_t, category_count> current_{};
    std::array<std::int64_t, category_count> peak_{};
    bool poison_ = false;
};

/// Counts bytes that something else holds, for as long as it lives.
class Reservation {
public:
    Reservation() = default;
    Reservation(Allocator& allocator, Category category, std::int64_t bytes);
    Reservation(Reservation&& other) noexcept;
    Reservation& operator=(Reservation&& other) noexcept;
    ~Reservation() { release(); }

    std::int64_t bytes() const { return bytes_; }

private:
    void release() noexcept;
    Allocator* allocator_ = nullptr;
    Category category_ = Category::scratch;
    std::int64_t bytes_ = 0;
};

class Buffer {
public:
    static constexpr std::size_t alignment = 64;

    Buffer() = default;
    Buffer(Allocator& allocator, Category category, std::int64_t bytes);

    std::byte* data() const { return data_.get(); }
    std::int64_t bytes() const { return counted_.bytes(); }
    explicit operator bool() const { return data_ != nullptr; }
    /// @pre the view has as many bytes as the buffer, or fewer
    tensor::View view(tensor::DType dtype, tensor::Shape shape) const { return {data(), dtype, std::move(shape)}; }

private:
    struct Free {
        Free() : mapped(0) {}
        explicit Free(std::size_t pages) : mapped(pages) {}
        std::size_t mapped;  ///< bytes of pages; 0 = from the heap
        void operator()(std::byte* data) const noexcept;
    };
    static std::unique_ptr<std::byte, Free> obtain(std::int64_t bytes);

    Reservation counted_;
    std::unique_ptr<std::byte, Free> data_;
};

}  // namespace shardplan::exec
