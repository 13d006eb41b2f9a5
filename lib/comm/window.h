// Memory that the members of a group on one host share, and the steps in which they exchange through it: every member
// fills its own half, says so and waits for the others; then all read all halves. The next step uses the other half,
// so one such meeting per step is enough: whoever fills a half again has seen that all have left the step before.
// Knows neither MPI nor tensors; whoever makes a Window keeps its memory alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardplan::comm {

/// How to write what another core will read. Where the cores share no cache, reading lines that are dirty in the
/// other's cache is several times slower than writing past the caches.
enum class Stores : std::uint8_t { plain, streaming };

class Window {
public:
    /// Bytes of one member's segment; it may begin anywhere. @pre half_bytes is a positive multiple of 64
    static std::int64_t segment_bytes(std::int64_t half_bytes);

    /// With less the collectives of n members cannot work.
    static std::int64_t least_half_bytes(std::int64_t n) { return 64 * (n + 1); }

    /// segments[p] is that of position p, zero before the first use. `crowded`: the members have fewer cores than they
    /// are, so that who waits lets others run at once.
    Window(const std::vector<std::byte*>& segments, std::int64_t position, std::int64_t half_bytes, bool crowded);

    std::int64_t n() const { return static_cast<std::int64_t>(bases_.size()); }
    std::int64_t position() const { return position_; }
    std::int64_t half_bytes() const { return half_bytes_; }
    Stores stores() const { return stores_; }
    void set_stores(Stores stores) { stores_ = stores; }

    /// Of the coming step, aligned to 64. May be filled once the last meeting is over.
    std::byte* own_half() const { return half(position_, step_ + 1); }
    /// Ends the filling. @pre all members call it equally often, and wait() after it
    void arrive();
    /// Returns when all members have ended their filling.
    void wait() const;
    void meet() {
        arrive();
        wait();
    }
    /// What position p filled for the last meeting; valid until the next one.
    const std::byte* half_of(std::int64_t p) const { return half(p, step_); }

    /// Copies into a half.
    void put(std::byte* to, const std::byte* from, std::int64_t bytes) const;

    /// Nanoseconds that a cache line takes from the first member to the last, the least of some tries; 0 elsewhere.
    /// Collective over the window.
    double measure_latency();

private:
    std::byte* half(std::int64_t p, std::uint64_t step) const;

    std::vector<std::byte*> bases_;
    std::int64_t position_ = 0;
    std::int64_t half_bytes_ = 0;
    bool crowded_ = false;
    std::uint64_t step_ = 0;
    Stores stores_ = Stores::plain;
};

}  // namespace shardplan::comm
