// Small deterministic hashes: FNV-1a for text (plan hash, tensor names), splitmix64 for counters.
#pragma once

#include <cstdint>
#include <string_view>

namespace shardplan::base {

constexpr std::uint64_t fnv1a(std::string_view text, std::uint64_t state = 0xcbf29ce484222325ULL) {
    for (const char c : text) {
        state = (state ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    }
    return state;
}

/// Finaliser of Steele et al., "Fast splittable pseudorandom number generators" (2014).
constexpr std::uint64_t splitmix64(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

}  // namespace shardplan::base
