// What the machine itself can do: bytes read per second, the time a cache line takes from core to core, the flops of
// its multiply-and-add units and those of oneDNN's matmul with packed weights. Medians over some tenths of a second
// each; one after the other.
#pragma once

#include <cstdint>
#include <vector>

namespace shardplan::bench {

double median(std::vector<double> values);

/// Bytes per second that `threads` threads read together: 256 MB in huge pages where the system gives them.
double read_bandwidth(int threads, double seconds);

/// Nanoseconds for a cache line to go from one core to another (half a round trip); 0 with one core.
double ping_pong(double seconds);

/// f32 flops per second of multiply-and-add out of registers, the widest that this program was compiled for.
double fma_flops(int threads, double seconds);

struct MatmulShape {
    std::int64_t m = 1, k = 1, n = 1;
};

/// Whether oneDNN multiplies bf16 here.
bool bf16_supported();

/// Median seconds of all products one after the other, [m,k] x [k,n] each with weights of its own that were packed
/// before, in the library's layout or transposed, whichever is faster. Passes go on for `seconds`, at least ten.
double matmul_seconds(const std::vector<MatmulShape>& shapes, bool bf16, int threads, double seconds);

}  // namespace shardplan::bench
