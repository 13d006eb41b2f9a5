// Collectives of this library against those of MPI: one JSON object per line and size. Every call is preceded by
// writing its input, as a matrix product would: that is what makes the other ranks' caches matter. The ways take turns;
// medians over the rounds, of the slowest rank. `messages_us`: this library with SHARDPLAN_TRANSPORT=mpi. `bytes`: of
// the larger one of input and output.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "bare_mpi.h"
#include "comm/communicator.h"
#include "comm/session.h"
#include "mesh/collective.h"

namespace {

using namespace shardplan;
using comm::TransportChoice;
using tensor::ConstView;
using tensor::DType;
using tensor::View;

constexpr int rounds = 9;
constexpr std::int64_t most_bytes = std::int64_t{64} << 20;

struct Free {
    void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t{64}); }
};
using Memory = std::unique_ptr<std::byte, Free>;

Memory allocate(std::int64_t bytes) {
    Memory memory(static_cast<std::byte*>(::operator new[](static_cast<std::size_t>(bytes), std::align_val_t{64})));
    std::fill_n(memory.get(), bytes, std::byte{0});
    return memory;
}

class Bench {
public:
    explicit Bench(comm::World& world)
        : world_(world),
          n_(world.size()),
          in_(allocate(most_bytes)),
          out_(allocate(most_bytes)),
          staging_(allocate(2 * most_bytes + 4096)) {
        for (const TransportChoice choice : {TransportChoice::automatic, TransportChoice::mpi}) {
            groups_.push_back(world.groups(mesh::Mesh({{"a", n_}}), {.transport = choice}));
        }
    }

    void run(std::string_view kind, DType dtype, std::int64_t longest) {
        for (std::int64_t bytes = 1024; bytes <= longest; bytes *= bytes >= std::int64_t{1} << 20 ? 4 : 2) {
            measure(kind, dtype, bytes / (n_ * 64) * n_ * 64);
        }
    }

    void probe(std::string_view when) {
        double fastest = 1e9;
        comm::Stores stores = comm::Stores::plain;
        for (int i = 0; i < 3; ++i) {
            const auto groups = world_.groups(mesh::Mesh({{"a", n_}}),
                                              {.transport = TransportChoice::shared, .window_half_bytes = 4096});
            float one = 1.0F;
            const View view{reinterpret_cast<std::byte*>(&one), DType::f32, {1}};
            groups->all_reduce(axes_, view, staging());
            const comm::WindowReport report = groups->windows().front();
            fastest = std::min(fastest, report.latency);
            stores = report.stores;
        }
        if (world_.rank() == 0) {
            fmt::print("{{\"probe\":\"ping_pong\",\"when\":\"{}\",\"ranks\":{},\"ns\":{:.0f},\"stores\":\"{}\"}}\n",
                       when, n_, fastest, stores == comm::Stores::streaming ? "streaming" : "plain");
            std::fflush(stdout);
        }
    }

private:
    std::span<std::byte> staging() { return {staging_.get(), static_cast<std::size_t>(2 * most_bytes + 4096)}; }

    void write_input(std::int64_t bytes) {
        value_ += 1.0F;
        const float value = value_;  // a member could lie in the memory, which would make the loop slow
        std::fill_n(reinterpret_cast<float*>(in_.get()), bytes / 4, value);
    }

    /// Bytes of input and output of a collective whose larger side has `bytes`.
    std::pair<std::int64_t, std::int64_t> sides(std::string_view kind, std::int64_t bytes) const {
        return {kind == "all_gather" ? bytes / n_ : bytes, kind == "reduce_scatter" ? bytes / n_ : bytes};
    }

    void call_bare(std::string_view kind, DType dtype, std::int64_t bytes) {
        if (kind == "all_reduce") {
            bench::mpi_all_reduce(dtype, in_.get(), bytes);
        } else if (kind == "all_gather") {
            bench::mpi_all_gather(in_.get(), out_.get(), bytes / n_);
        } else if (kind == "reduce_scatter") {
            bench::mpi_reduce_scatter(dtype, in_.get(), out_.get(), bytes / n_);
        } else if (kind == "all_to_all") {
            bench::mpi_all_to_all(in_.get(), out_.get(), bytes / n_);
        } else {
            bench::mpi_pass_on(in_.get(), out_.get(), bytes);
        }
    }

    void call_groups(comm::Groups& groups, std::string_view kind, DType dtype, std::int64_t bytes) {
        const auto [input, output] = sides(kind, bytes);
        const std::int64_t element = tensor::size_of(dtype);
        const View in{in_.get(), dtype, {input / element}};
        const View out{out_.get(), dtype, {output / element}};
        if (kind == "all_reduce") {
            groups.all_reduce(axes_, in, staging());
        } else if (kind == "all_gather") {
            groups.all_gather(axes_, 0, in, out, staging());
        } else if (kind == "reduce_scatter") {
            groups.reduce_scatter(axes_, 0, in, out, staging());
        } else if (kind == "all_to_all") {
            groups.all_to_all(axes_, 0, 0, in, out, staging());
        } else {
            const std::int64_t next = (world_.rank() + 1) % n_;
            groups.permute(axes_, (world_.rank() + n_ - 1) % n_, {&next, 1}, in, out);
        }
    }

    /// Seconds per call on the slowest rank.
    double time(std::int64_t input, int repeats, const std::function<void()>& call) {
        write_input(input);
        call();  // leaves the memory in the caches as this way does, whichever was before
        bench::mpi_barrier();
        const double start = bench::wall_seconds();
        for (int i = 0; i < repeats; ++i) {
            write_input(input);
            call();
        }
        double seconds = (bench::wall_seconds() - start) / repeats;
        world_.all_reduce(std::span(&seconds, 1), comm::WorldOp::max);
        return seconds;
    }

    void measure(std::string_view kind, DType dtype, std::int64_t bytes) {
        const std::int64_t input = sides(kind, bytes).first;
        const int repeats = static_cast<int>(std::clamp<std::int64_t>((std::int64_t{16} << 20) / bytes, 2, 500));
        const std::vector<std::function<void()>> ways = {[&] { call_bare(kind, dtype, bytes); },
                                                         [&] { call_groups(*groups_[0], kind, dtype, bytes); },
                                                         [&] { call_groups(*groups_[1], kind, dtype, bytes); }};
        std::vector<std::vector<double>> seconds(ways.size());
        for (int round = -1; round < rounds; ++round) {  // the first one warms up
            for (std::size_t way = 0; way < ways.size(); ++way) {
                const double one = time(input, repeats, ways[way]);
                if (round >= 0) {
                    seconds[way].push_back(one);
                }
            }
        }
        std::vector<double> medians;
        for (std::vector<double>& times : seconds) {
            std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
            medians.push_back(times[rounds / 2] * 1e6);
        }
        if (world_.rank() == 0) {
            fmt::print(
                "{{\"collective\":\"{}\",\"dtype\":\"{}\",\"ranks\":{},\"bytes\":{},\"mpi_us\":{:.2f},\"us\":{:.2f},"
                "\"messages_us\":{:.2f},\"ratio\":{:.2f}}}\n",
                kind, tensor::to_string(dtype), n_, bytes, medians[0], medians[1], medians[2], medians[0] / medians[1]);
            std::fflush(stdout);
        }
    }

    comm::World& world_;
    std::int64_t n_;
    mesh::AxisList axes_{mesh::AxisId{0}};
    Memory in_;
    Memory out_;
    Memory staging_;
    float value_ = 0.0F;
    std::vector<std::unique_ptr<comm::Groups>> groups_;
};

}  // namespace

int main(int argc, char** argv) {
    const comm::Session session(argc, argv);
    const auto world = comm::make_mpi_world();
    Bench bench(*world);
    std::vector<std::string_view> kinds(argv + 1, argv + argc);
    std::int64_t longest = most_bytes;
    if (kinds.size() >= 2 && kinds[0] == "--longest") {
        longest = std::min<std::int64_t>(longest, std::atoll(argv[2]));
        kinds.erase(kinds.begin(), kinds.begin() + 2);
    }
    if (kinds.empty()) {
        kinds = {"all_reduce", "reduce_scatter", "all_gather", "all_to_all", "permute"};
    }
    bench.probe("before");
    for (const std::string_view kind : kinds) {
        bench.run(kind.ends_with("_bf16") ? kind.substr(0, kind.size() - 5) : kind,
                  kind.ends_with("_bf16") ? DType::bf16 : DType::f32, longest);
    }
    bench.probe("after");
    return 0;
}
