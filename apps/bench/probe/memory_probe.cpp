#include <omp.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <thread>

#include "probes.h"

namespace shardplan::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

class Mapping {
public:
    explicit Mapping(std::size_t bytes) : bytes_(bytes) {
        data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (data_ == MAP_FAILED) {
            throw std::runtime_error("no memory for the probe");
        }
        madvise(data_, bytes, MADV_HUGEPAGE);
    }
    ~Mapping() { munmap(data_, bytes_); }
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    float* floats() const { return static_cast<float*>(data_); }

private:
    std::size_t bytes_;
    void* data_;
};

/// Sums so many independent lanes that neither latency nor the adders bound it.
float sum(const float* data, std::size_t count) {
    constexpr std::size_t lanes = 64;
    float sums[lanes] = {};
    for (std::size_t i = 0; i + lanes <= count; i += lanes) {
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            sums[lane] += data[i + lane];
        }
    }
    float total = 0.0F;
    for (const float value : sums) {
        total += value;
    }
    return total;
}

/// The first two cores this process may use.
std::vector<int> two_cores() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof allowed, &allowed);
    std::vector<int> cores;
    for (int core = 0; core < CPU_SETSIZE && cores.size() < 2; ++core) {
        if (CPU_ISSET(core, &allowed)) {
            cores.push_back(core);
        }
    }
    return cores;
}

void bind_to(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    sched_setaffinity(0, sizeof set, &set);
}

/// Waits until `turn` is `value`; gives the core away now and then, should another process need it.
void wait_for(const std::atomic<int>& turn, int value) {
    for (int spins = 0; turn.load(std::memory_order_acquire) != value; ++spins) {
        if (spins > 100'000) {
            sched_yield();
        }
    }
}

}  // namespace

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values.empty() ? 0.0 : values[values.size() / 2];
}

double read_bandwidth(int threads, double seconds) {
    constexpr std::size_t bytes = std::size_t{256} << 20;
    const Mapping memory(bytes);
    const std::size_t each = bytes / sizeof(float) / static_cast<std::size_t>(threads);
    std::vector<double> rates;
    float total = 0.0F;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int t = 0; t < threads; ++t) {
        std::fill_n(memory.floats() + static_cast<std::size_t>(t) * each, each, 1.0F);
    }
    const auto begin = Clock::now();
    while (rates.size() < 5 || seconds_since(begin) < seconds) {
        const auto start = Clock::now();
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : total)
        for (int t = 0; t < threads; ++t) {
            total += sum(memory.floats() + static_cast<std::size_t>(t) * each, each);
        }
        rates.push_back(static_cast<double>(each * sizeof(float)) * threads / seconds_since(start));
    }
    if (total <= 0.0F) {  // the sums must be wanted
        throw std::logic_error("read something else than was written");
    }
    return median(rates);
}

double ping_pong(double seconds) {
    const std::vector<int> cores = two_cores();
    if (cores.size() < 2) {
        return 0.0;
    }
    constexpr int rounds = 2000;
    alignas(128) std::atomic<int> turn{0};
    std::atomic<bool> stop{false};
    std::thread other([&] {
        bind_to(cores[1]);
        while (!stop.load(std::memory_order_relaxed)) {
            if (turn.load(std::memory_order_acquire) == 1) {
                turn.store(0, std::memory_order_release);
            }
        }
    });
    std::vector<double> times;
    std::thread one([&] {
        bind_to(cores[0]);
        const auto begin = Clock::now();
        while (times.size() < 5 || seconds_since(begin) < seconds) {
            const auto start = Clock::now();
            for (int i = 0; i < rounds; ++i) {
                turn.store(1, std::memory_order_release);
                wait_for(turn, 0);
            }
            times.push_back(seconds_since(start) / rounds / 2.0 * 1e9);
        }
        stop = true;
    });
    one.join();
    other.join();
    // Other processes only ever add to it: the lowest tenth says where the cores are.
    std::sort(times.begin(), times.end());
    return times[times.size() / 10];
}

}  // namespace shardplan::bench
