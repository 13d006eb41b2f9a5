#include "exec/buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <new>
#include <utility>

#include "base/checked.h"

namespace shardplan::exec {
namespace {

constexpr std::int64_t paged_from = std::int64_t{4} << 20;

}  // namespace

std::string_view to_string(Category category) {
    switch (category) {
        case Category::parameters: return "parameters";
        case Category::cache: return "cache";
        case Category::activations: return "activations";
        case Category::communication: return "communication";
        case Category::arena: return "arena";
        case Category::scratch: return "scratch";
    }
    return "scratch";
}

std::int64_t peak_resident_bytes() {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
        std::int64_t kibibytes = 0;
        if (word == "VmHWM:" && status >> kibibytes) {
            return kibibytes * 1024;
        }
    }
    return 0;
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
    : counted_(allocator, category, bytes), data_(obtain(bytes)) {
    if (allocator.poison()) {
        std::memset(data(), 0xff, static_cast<std::size_t>(bytes));
    }
}

std::unique_ptr<std::byte, Buffer::Free> Buffer::obtain(std::int64_t bytes) {
    const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
    if (bytes < paged_from) {
        return {static_cast<std::byte*>(::operator new (size, std::align_val_t{alignment})), Free{}};
    }
    void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
        throw std::bad_alloc();
    }
    madvise(data, size, MADV_HUGEPAGE);  // without huge pages it is only slower
    return {static_cast<std::byte*>(data), Free{size}};
}

void Buffer::Free::operator()(std::byte* data) const noexcept {
    if (mapped > 0) {
        munmap(data, mapped);
        return;
    }
    ::operator delete (data, std::align_val_t{alignment});
}

}  // namespace shardplan::exec
