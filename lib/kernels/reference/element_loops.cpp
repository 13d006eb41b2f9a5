#include "kernels/reference/element_loops.h"

#include "kernels/reference/element_bodies.h"
#include "kernels/reference/instruction_set.h"
#include "kernels/reference/norm_bodies.h"
#include "kernels/reference/rotation_bodies.h"

namespace shardplan::kernels {
namespace {

#define SHARDPLAN_ELEMENT_FUNCTIONS(suffix, lanes, attribute, T)                                               \
    attribute void map_##suffix(Map op, float parameter, const T* x, std::int64_t count, T* y) {               \
        map_body<lanes>(op, parameter, x, count, y);                                                           \
    }                                                                                                          \
    attribute void glu_##suffix(Activation activation, const T* gate, const T* up, std::int64_t count, T* y) { \
        glu_body<lanes>(activation, gate, up, count, y);                                                       \
    }                                                                                                          \
    attribute void add_##suffix(const T* a, const T* b, std::int64_t count, T* y) {                            \
        zip_loop<lanes>(a, b, count, y, AddOp<lanes>{});                                                       \
    }                                                                                                          \
    attribute void norm_sums_##suffix(const T* row, std::int64_t count, double* sum, double& squares) {        \
        double total = 0.0;                                                                                    \
        if (sum == nullptr) {                                                                                  \
            norm_sums_body<lanes, false>(row, count, total, squares);                                          \
        } else {                                                                                               \
            norm_sums_body<lanes, true>(row, count, *sum, squares);                                            \
        }                                                                                                      \
    }                                                                                                          \
    attribute void normalise_##suffix(const T* x, std::int64_t count, const NormScale<T>& scale, T* y) {       \
        normalise_body<lanes>(x, count, scale, y);                                                             \
    }                                                                                                          \
    attribute void rotate_##suffix(const T* x, const HeadRotation& rotation, std::int64_t heads, T* y) {       \
        rotate_body<lanes>(x, rotation, heads, y);                                                             \
    }                                                                                                          \
    constexpr ElementFunctions<T> functions_##suffix{                                                          \
        .map = map_##suffix,                                                                                   \
        .glu = glu_##suffix,                                                                                   \
        .add = add_##suffix,                                                                                   \
        .norm_sums = norm_sums_##suffix,                                                                       \
        .normalise = normalise_##suffix,                                                                       \
        .rotate = rotate_##suffix,                                                                             \
    };

#define SHARDPLAN_ELEMENT_LOOPS(suffix, lanes, attribute)                                                     \
    SHARDPLAN_ELEMENT_FUNCTIONS(f32_##suffix, lanes, attribute, float)                                        \
    SHARDPLAN_ELEMENT_FUNCTIONS(bf16_##suffix, lanes, attribute, std::uint16_t)                               \
    attribute void clamped_glu_##suffix(const float* gate, const float* up, float limit, std::int64_t count,  \
                                        float* y) {                                                           \
        zip_loop<lanes>(gate, up, count, y, ClampedGluOp<lanes>{limit});                                      \
    }                                                                                                         \
    attribute void add_scaled_##suffix(const float* x, float factor, std::int64_t count, float* sums) {       \
        zip_loop<lanes>(static_cast<const float*>(sums), x, count, sums, AddScaledOp<lanes>{factor});         \
    }                                                                                                         \
    attribute void cos_sin_##suffix(float position, const float* frequencies, std::int64_t count, float* cos, \
                                    float* sin) {                                                             \
        cos_sin_body<lanes>(position, frequencies, count, cos, sin);                                          \
    }                                                                                                         \
    attribute void widen_half_##suffix(const std::uint16_t* from, std::int64_t count, float* to) {            \
        widen_half_body<lanes>(from, count, to);                                                              \
    }                                                                                                         \
    constexpr ElementLoops loops_##suffix{                                                                    \
        .name = #suffix,                                                                                      \
        .f32 = functions_f32_##suffix,                                                                        \
        .bf16 = functions_bf16_##suffix,                                                                      \
        .clamped_glu = clamped_glu_##suffix,                                                                  \
        .add_scaled = add_scaled_##suffix,                                                                    \
        .cos_sin = cos_sin_##suffix,                                                                          \
        .widen_half = widen_half_##suffix,                                                                    \
    };

SHARDPLAN_ELEMENT_LOOPS(baseline, 4, )
#if defined(__x86_64__)
SHARDPLAN_ELEMENT_LOOPS(avx2, 8, SHARDPLAN_AVX2)
SHARDPLAN_ELEMENT_LOOPS(avx512, 16, SHARDPLAN_AVX512)
#endif

}  // namespace

const std::vector<ElementLoops>& available_element_loops() {
    static const std::vector<ElementLoops> available = runnable<ElementLoops>(SHARDPLAN_COMPILED(loops_));
    return available;
}

}  // namespace shardplan::kernels
