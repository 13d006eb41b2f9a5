#include "exec/trace.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

namespace shardplan::exec {
namespace {

std::int64_t nanoseconds(Trace::Clock::time_point time) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

mesh::AxisList only_axis() {
    mesh::AxisList axes;
    axes.push_back(mesh::AxisId{0});
    return axes;
}

constexpr int ping_pongs = 16;

/// Rank 0 answers with its time; half of the way lies before that moment.
std::int64_t ask_time(comm::Groups& pairs) {
    std::int64_t message = 0;
    const tensor::View view{reinterpret_cast<std::byte*>(&message), tensor::DType::i64, {1}};
    std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
    std::int64_t offset = 0;
    for (int i = 0; i < ping_pongs; ++i) {
        const std::int64_t sent = nanoseconds(Trace::Clock::now());
        pairs.send(only_axis(), 0, view);
        pairs.receive(only_axis(), 0, view);
        const std::int64_t received = nanoseconds(Trace::Clock::now());
        if (received - sent < shortest) {
            shortest = received - sent;
            offset = message - (sent + shortest / 2);
        }
    }
    return offset;
}

void answer(comm::Groups& pairs, std::int64_t rank) {
    std::int64_t message = 0;
    const tensor::View view{reinterpret_cast<std::byte*>(&message), tensor::DType::i64, {1}};
    for (int i = 0; i < ping_pongs; ++i) {
        pairs.receive(only_axis(), rank, view);
        message = nanoseconds(Trace::Clock::now());
        pairs.send(only_axis(), rank, view);
    }
}

}  // namespace

void Trace::add(std::int32_t use, std::int32_t step, std::int64_t pass, Clock::time_point start,
                Clock::time_point end) {
    events_.push_back(
        {use, step, static_cast<std::int32_t>(pass), run_, nanoseconds(start), nanoseconds(end) - nanoseconds(start)});
}

void Trace::clear() {
    events_.clear();
    run_ = -1;
}

std::int64_t clock_offset(comm::World& world) {
    if (world.size() == 1) {
        return 0;
    }
    const auto pairs = world.groups(mesh::Mesh({{"rank", world.size()}}));
    if (world.rank() != 0) {
        return ask_time(*pairs);
    }
    for (std::int64_t rank = 1; rank < world.size(); ++rank) {
        answer(*pairs, rank);
    }
    return 0;
}

std::vector<std::vector<TraceEvent>> gather_trace(comm::World& world, const Trace& own) {
    static_assert(std::is_trivially_copyable_v<TraceEvent>);
    const std::int64_t offset = clock_offset(world);
    std::vector<TraceEvent> events = own.events();
    for (TraceEvent& event : events) {
        event.start += offset;
    }
    const std::string bytes(reinterpret_cast<const char*>(events.data()), events.size() * sizeof(TraceEvent));
    std::vector<std::vector<TraceEvent>> all;
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    for (const std::string& text : world.gather(bytes)) {
        std::vector<TraceEvent>& rank = all.emplace_back(text.size() / sizeof(TraceEvent));
        std::copy_n(text.data(), text.size(), reinterpret_cast<char*>(rank.data()));
        for (const TraceEvent& event : rank) {
            first = std::min(first, event.start);
        }
    }
    for (std::vector<TraceEvent>& rank : all) {
        for (TraceEvent& event : rank) {
            event.start -= first;
        }
    }
    return all;
}

}  // namespace shardplan::exec
