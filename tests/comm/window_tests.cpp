// Members of a window as threads of one process: both kinds of stores, all pieces, without MPI.
#include "comm/window.h"

#include <doctest/doctest.h>

#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "comm/window_collectives.h"
#include "tensors.h"

using namespace shardplan;
using comm::Reduction;
using comm::Stores;
using comm::Window;
using tensor::DType;
using tensor::Shape;
using test::Tensor;

namespace {

/// Runs `work` for each of n members, each on a thread of its own. Segments begin at odd addresses, as MPI's do.
void run_members(std::int64_t n, std::int64_t half_bytes, Stores stores, const std::function<void(Window&)>& work) {
    const std::int64_t bytes = Window::segment_bytes(half_bytes);
    std::vector<std::vector<std::byte>> memory(static_cast<std::size_t>(n),
                                               std::vector<std::byte>(static_cast<std::size_t>(bytes) + 8));
    std::vector<std::byte*> segments;
    for (std::vector<std::byte>& one : memory) {
        segments.push_back(one.data() + 8);
    }
    std::vector<std::thread> threads;
    for (std::int64_t p = 0; p < n; ++p) {
        threads.emplace_back([&, p] {
            Window window(segments, p, half_bytes, true);
            window.set_stores(stores);
            work(window);
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

/// Contribution of one member to round `round`.
Tensor contribution(DType dtype, const Shape& shape, std::int64_t position, std::int64_t round = 0) {
    const auto salt = static_cast<std::uint64_t>(position * 1000 + round);
    return test::generate(dtype, shape,
                          [&](const Shape& index) { return test::bits_of(dtype, test::hash_of(salt, index)); });
}

/// All members' contributions combined in order of position.
Tensor combined(Reduction reduction, DType dtype, const Shape& shape, std::int64_t n, std::int64_t round = 0) {
    std::vector<std::byte> blocks;
    for (std::int64_t p = 0; p < n; ++p) {
        const Tensor part = contribution(dtype, shape, p, round);
        blocks.insert(blocks.end(), part.bytes.begin(), part.bytes.end());
    }
    Tensor result(dtype, shape);
    comm::ordered_reduce(reduction, dtype, blocks.data(), n, tensor::element_count(shape), result.bytes.data());
    return result;
}

/// Results of all members, compared by the thread that owns doctest.
template <typename Work>
std::vector<Tensor> results_of(std::int64_t n, std::int64_t half_bytes, Stores stores, const Tensor& empty, Work work) {
    std::vector<Tensor> results(static_cast<std::size_t>(n), empty);
    run_members(n, half_bytes, stores,
                [&](Window& window) { work(window, results[static_cast<std::size_t>(window.position())]); });
    return results;
}

}  // namespace

TEST_CASE("an all-reduce through a window, around all boundaries of its pieces") {
    for (const Stores stores : {Stores::plain, Stores::streaming}) {
        for (const std::int64_t n : {2, 3, 5}) {
            for (const std::int64_t half : {Window::least_half_bytes(n), std::int64_t{4096}, std::int64_t{1} << 15}) {
                const std::int64_t share = half / (n + 1) / 64 * 64;
                for (const std::int64_t bytes : {std::int64_t{4}, std::int64_t{60}, half - 4, half, half + 4,
                                                 n * share - 4, n * share, n * share + 4, 5 * half + 36}) {
                    CAPTURE(n);
                    CAPTURE(half);
                    CAPTURE(bytes);
                    const Shape shape{bytes / 4};
                    const auto results =
                        results_of(n, half, stores, Tensor(DType::f32, shape), [&](Window& window, Tensor& own) {
                            own = contribution(DType::f32, shape, window.position());
                            comm::window_all_reduce(window, Reduction::sum, own.view());
                        });
                    const Tensor expected = combined(Reduction::sum, DType::f32, shape, n);
                    for (const Tensor& result : results) {
                        CHECK(result == expected);
                    }
                }
            }
        }
    }
}

TEST_CASE("many collectives in a row never meet each other's data") {
    constexpr std::int64_t n = 4;
    constexpr std::int64_t rounds = 300;
    for (const Stores stores : {Stores::plain, Stores::streaming}) {
        std::vector<std::int64_t> wrong(n, 0);
        run_members(n, 1024, stores, [&](Window& window) {
            test::Random random(5);
            for (std::int64_t round = 0; round < rounds; ++round) {
                const Shape shape{1 + random.below(1200)};
                const DType dtype = random.below(2) == 0 ? DType::bf16 : DType::f64;
                Tensor own = contribution(dtype, shape, window.position(), round);
                Tensor in = own;
                Tensor out(dtype, {shape[0] * n});
                comm::window_all_gather(window, 0, in.view(), out.view());
                comm::window_all_reduce(window, Reduction::max, own.view());
                std::vector<std::byte> all;
                for (std::int64_t p = 0; p < n; ++p) {
                    const Tensor part = contribution(dtype, shape, p, round);
                    all.insert(all.end(), part.bytes.begin(), part.bytes.end());
                }
                const bool right = own == combined(Reduction::max, dtype, shape, n, round) && out.bytes == all;
                wrong[static_cast<std::size_t>(window.position())] += right ? 0 : 1;
            }
        });
        CHECK(wrong == std::vector<std::int64_t>(n, 0));
    }
}

TEST_CASE("members that send very different numbers of rows take the same number of steps") {
    constexpr std::int64_t n = 3;
    constexpr std::int64_t row = 24;
    // From 0 many rows to 2 only; nobody sends to 1; 2 sends one to each.
    const std::vector<std::vector<std::int64_t>> sends = {{2, 0, 500}, {0, 0, 0}, {1, 1, 1}};
    for (const std::int64_t half : {std::int64_t{256}, std::int64_t{1} << 16}) {
        std::vector<std::vector<std::byte>> received(n);
        run_members(n, half, Stores::plain, [&](Window& window) {
            const auto me = static_cast<std::size_t>(window.position());
            std::vector<std::int64_t> arriving;
            for (const auto& rows : sends) {
                arriving.push_back(rows[me]);
            }
            const auto total = [](const auto& rows) { return std::accumulate(rows.begin(), rows.end(), 0L) * row; };
            std::vector<std::byte> out(static_cast<std::size_t>(total(sends[me])));
            for (std::size_t i = 0; i < out.size(); ++i) {
                out[i] = static_cast<std::byte>(me * 100 + i % 97);
            }
            received[me].resize(static_cast<std::size_t>(total(arriving)));
            comm::window_all_to_all_rows(window, out.data(), sends[me], received[me].data(), arriving, row);
        });
        for (std::size_t to = 0; to < n; ++to) {
            std::vector<std::byte> expected;
            for (std::size_t from = 0; from < n; ++from) {
                const std::int64_t first =
                    std::accumulate(sends[from].begin(), sends[from].begin() + static_cast<long>(to), 0L);
                for (std::int64_t i = first * row; i < (first + sends[from][to]) * row; ++i) {
                    expected.push_back(static_cast<std::byte>(from * 100 + static_cast<std::size_t>(i) % 97));
                }
            }
            CHECK(received[to] == expected);
        }
    }
}

TEST_CASE("the latency between the first and the last member is measured by these two") {
    std::vector<double> latency(3, -1.0);
    run_members(3, 256, Stores::plain, [&](Window& window) {
        latency[static_cast<std::size_t>(window.position())] = window.measure_latency();
    });
    CHECK(latency[0] > 0.0);
    CHECK(latency[1] == 0.0);
    CHECK(latency[2] > 0.0);
}
