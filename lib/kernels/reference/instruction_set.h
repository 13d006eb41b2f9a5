// Which of the instruction sets that loops are compiled for this machine has.
#pragma once

namespace shardplan::kernels {

#if defined(__x86_64__)
#define SHARDPLAN_AVX2 __attribute__((target("avx2,fma")))
#define SHARDPLAN_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx2,fma")))

inline bool has_avx2() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

inline bool has_avx512() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl");
}
#endif

}  // namespace shardplan::kernels
