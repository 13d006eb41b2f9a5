#include "exec/buffer.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/checked.h"

namespace shardplan::exec {

std::string_view to_string(Category category) {
    switch (category) {
        case Category::parameters: return "parameters";
        case Category::cache: return "cache";
        case Category::activations: return "activations";
        case Category::communication: return "communication";
        case Category::scratch: return "scratch";
    }
    return "scratch";
}

void Allocator::add(Category category, std::int64_t bytes) {
    std::int64_t& current = current_[index(category)];
    current = base::checked_add(current, bytes);
    peak_[index(category)] = std::max(peak_[index(category)], current);
}

Reservation::Reservation(Allocator& allocator, Category category, std::int64_t bytes)
    : allocator_(&allocator), category_(category), bytes_(bytes) {
    allocator.add(category, bytes);
}

Reservation::Reservation(Reservation&& other) noexcept
    : allocator_(std::exchange(other.allocator_, nullptr)),
      category_(other.category_),
      bytes_(std::exchange(other.bytes_, 0)) {}

Reservation& Reservation::operator=(Reservation&& other) noexcept {
    if (this != &other) {
        release();
        allocator_ = std::exchange(other.allocator_, nullptr);
        category_ = other.category_;
        bytes_ = std::exchange(other.bytes_, 0);
    }
    return *this;
}

void Reservation::release() noexcept {
    if (allocator_ != nullptr) {
        allocator_->remove(category_, bytes_);
    }
    allocator_ = nullptr;
    bytes_ = 0;
}

Buffer::Buffer(Allocator& allocator, Category category, std::int64_t bytes)
    : counted_(allocator, category, bytes),
      data_(static_cast<std::byte*>(
          ::operator new (static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)), std::align_val_t{alignment}))) {
    if (allocator.poison()) {
        std::memset(data(), 0xff, static_cast<std::size_t>(bytes));
    }
}

void Buffer::Free::operator()(std::byte* data) const noexcept {
    ::operator delete (data, std::align_val_t{alignment});
}

}  // namespace shardplan::exec
