// shardplan_bench_probe memory THREADS SECONDS
// shardplan_bench_probe matmul THREADS SECONDS f32|bf16 MxKxN...
// shardplan_bench_probe fma THREADS SECONDS
// One line of JSON: bytes per second and ping-pong; the seconds and flops per second of the products one after the
// other; flops per second.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include "probes.h"

namespace {

using shardplan::bench::MatmulShape;

MatmulShape parse_shape(const std::string& text) {
    MatmulShape shape;
    char end = 0;
    long long m = 0, k = 0, n = 0;
    if (std::sscanf(text.c_str(), "%lldx%lldx%lld%c", &m, &k, &n, &end) != 3 || m < 1 || k < 1 || n < 1) {
        throw std::invalid_argument("not a shape MxKxN: " + text);
    }
    shape.m = m, shape.k = k, shape.n = n;
    return shape;
}

std::string probe_memory(int threads, double seconds) {
    return fmt::format("{{\"bytes_per_second\": {}, \"ping_pong_ns\": {}, \"bf16\": {}}}",
                       shardplan::bench::read_bandwidth(threads, seconds), shardplan::bench::ping_pong(0.1),
                       shardplan::bench::bf16_supported());
}

std::string probe_matmul(int threads, double seconds, int argc, char** argv) {
    const std::string type = argc > 4 ? argv[4] : "";
    std::vector<MatmulShape> shapes;
    double flops = 0.0;
    for (int i = 5; i < argc; ++i) {
        const MatmulShape shape = parse_shape(argv[i]);
        flops += 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.k) * static_cast<double>(shape.n);
        shapes.push_back(shape);
    }
    if (shapes.empty() || (type != "f32" && type != "bf16")) {
        throw std::invalid_argument("matmul takes f32 or bf16, and shapes");
    }
    const double time = shardplan::bench::matmul_seconds(shapes, type == "bf16", threads, seconds);
    return fmt::format("{{\"seconds\": {}, \"flops_per_second\": {}}}", time, flops / time);
}

std::string probe_fma(int threads, double seconds) {
    return fmt::format("{{\"flops_per_second\": {}}}", shardplan::bench::fma_flops(threads, seconds));
}

std::string probe(const std::string& what, int argc, char** argv) {
    const int threads = std::stoi(argv[2]);
    const double seconds = std::stod(argv[3]);
    if (what == "memory") {
        return probe_memory(threads, seconds);
    }
    return what == "fma" ? probe_fma(threads, seconds) : probe_matmul(threads, seconds, argc, argv);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        if (argc < 4) {
            throw std::invalid_argument("usage: memory|fma THREADS SECONDS | matmul THREADS SECONDS f32|bf16 MxKxN...");
        }
        fmt::print("{}\n", probe(argv[1], argc, argv));
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "shardplan_bench_probe: {}\n", error.what());
        return 2;
    }
}
