#include "comm/window.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <iterator>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace shardplan::comm {

namespace {

using Flag = std::atomic<std::uint64_t>;
static_assert(Flag::is_always_lock_free);

constexpr std::int64_t line = 64;
constexpr std::int64_t flag_bytes = 2 * line;  // two: neighbouring lines are fetched in pairs
constexpr std::int64_t bounce_offset = line;   // of the second flag, which measures the latency

std::byte* aligned(std::byte* address) {
    const auto value = reinterpret_cast<std::uintptr_t>(address);
    return address + (line - value % line) % line;
}

Flag& flag_at(std::byte* address) {
    return *reinterpret_cast<Flag*>(address);
}

void pause() {
#if defined(__x86_64__)
    _mm_pause();
#endif
}

/// Looks without a pause at first, then leaves the core to other processes between the looks: by yielding where the
/// members share cores, and in the end asleep. Only sleeping is good against strangers that compute all the time: the
/// scheduler of Linux (EEVDF, from 6.6 on) takes a whole slice from whoever yields to them.
template <typename Ready>
void wait_until(bool crowded, Ready ready) {
    using Clock = std::chrono::steady_clock;
    constexpr auto long_wait = std::chrono::microseconds(200);
    constexpr timespec nap{0, 20'000};
    const int looks = crowded ? 10 : 300;  // 300: some microseconds
    for (int i = 0; i < looks; ++i) {
        if (ready()) {
            return;
        }
        pause();
    }
    for (const auto start = Clock::now(); !ready();) {
        if (Clock::now() - start >= long_wait) {
            ::nanosleep(&nap, nullptr);
        } else if (crowded) {
            ::sched_yield();
        } else {
            pause();
        }
    }
}

#if defined(__x86_64__)
/// Past the caches. @pre `to` is aligned to 16
void stream(std::byte* to, const std::byte* from, std::int64_t bytes) {
    std::int64_t i = 0;
    for (; i + line <= bytes; i += line) {
        __m128i part[4];
        std::memcpy(part, from + i, sizeof(part));
        for (int k = 0; k < 4; ++k) {
            _mm_stream_si128(reinterpret_cast<__m128i*>(to + i) + k, part[k]);
        }
    }
    std::memcpy(to + i, from + i, static_cast<std::size_t>(bytes - i));
}
#endif

}  // namespace

std::int64_t Window::segment_bytes(std::int64_t half_bytes) {
    return line + flag_bytes + 2 * half_bytes;
}

Window::Window(const std::vector<std::byte*>& segments, std::int64_t position, std::int64_t half_bytes, bool crowded)
    : position_(position), half_bytes_(half_bytes), crowded_(crowded) {
    std::transform(segments.begin(), segments.end(), std::back_inserter(bases_), aligned);
}

std::byte* Window::half(std::int64_t p, std::uint64_t step) const {
    return bases_[static_cast<std::size_t>(p)] + flag_bytes + static_cast<std::int64_t>(step % 2) * half_bytes_;
}

void Window::arrive() {
    ++step_;
#if defined(__x86_64__)
    if (stores_ == Stores::streaming) {
        _mm_sfence();  // streaming stores are not ordered by the release
    }
#endif
    flag_at(bases_[static_cast<std::size_t>(position_)]).store(step_, std::memory_order_release);
}

void Window::wait() const {
    for (std::int64_t i = 1; i < n(); ++i) {
        const Flag& flag = flag_at(bases_[static_cast<std::size_t>((position_ + i) % n())]);
        wait_until(crowded_, [&] { return flag.load(std::memory_order_acquire) >= step_; });
    }
}

void Window::put(std::byte* to, const std::byte* from, std::int64_t bytes) const {
#if defined(__x86_64__)
    constexpr std::int64_t worth_streaming = 512;
    if (stores_ == Stores::streaming && bytes >= worth_streaming) {
        const std::int64_t head = aligned(to) - to;
        std::memcpy(to, from, static_cast<std::size_t>(head));
        return stream(to + head, from + head, bytes - head);
    }
#endif
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

double Window::measure_latency() {
    constexpr int tries = 10;
    constexpr std::uint64_t rounds = 50;
    if (position_ != 0 && position_ != n() - 1) {
        return 0.0;
    }
    Flag& own = flag_at(bases_[static_cast<std::size_t>(position_)] + bounce_offset);
    const Flag& other = flag_at(bases_[static_cast<std::size_t>(n() - 1 - position_)] + bounce_offset);
    const bool first = position_ == 0;
    double best = 1e9;
    std::uint64_t value = own.load(std::memory_order_relaxed);
    for (int i = 0; i < tries; ++i) {
        const auto start = std::chrono::steady_clock::now();
        for (std::uint64_t r = 0; r < rounds; ++r) {
            ++value;
            if (first) {
                own.store(value, std::memory_order_release);
            }
            wait_until(crowded_, [&] { return other.load(std::memory_order_acquire) >= value; });
            if (!first) {
                own.store(value, std::memory_order_release);
            }
        }
        const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
        best = std::min(best, elapsed.count() / static_cast<double>(2 * rounds));
    }
    return best;
}

}  // namespace shardplan::comm
