// Which of the instruction sets that loops are compiled for this machine has.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

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

/// The tables of loops prefix##avx512, prefix##avx2 and prefix##baseline, as far as they are compiled, best first.
#define SHARDPLAN_COMPILED(prefix) \
    { prefix##avx512, prefix##avx2, prefix##baseline }
#else
#define SHARDPLAN_COMPILED(prefix) \
    { prefix##baseline }
#endif

inline bool can_run(std::string_view instruction_set) {
#if defined(__x86_64__)
    if (instruction_set == "avx512") {
        return has_avx512();
    }
    if (instruction_set == "avx2") {
        return has_avx2();
    }
#endif
    return instruction_set == "baseline";
}

/// Those of the tables that this machine can run. Table::name is the instruction set.
template <typename Table>
std::vector<Table> runnable(std::initializer_list<Table> compiled) {
    std::vector<Table> found;
    for (const Table& table : compiled) {
        if (can_run(table.name)) {
            found.push_back(table);
        }
    }
    return found;
}

}  // namespace shardplan::kernels
