// The loops over neighbouring elements: activations, sums, products, norms and rotations, vectorised for the
// instruction set found at run time like those of tiles.h. An element's result depends neither on its place nor on the
// number of elements. How exact the functions are is in vector_math.h. y may be one of the inputs.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/activation.h"

namespace shardplan::kernels {

/// Functions of one value and a parameter. The first are the activations, which ignore the parameter.
enum class Map : std::uint8_t {
    silu,
    gelu,
    gelu_tanh,
    quick_gelu,
    relu,
    relu2,
    scale,    ///< x * parameter
    softcap,  ///< parameter * tanh(x / parameter)
    clip,     ///< into [-parameter, parameter]
};

/// What a norm does to a row: y = (x - shift) * factor [* (weight + weight_offset)] [+ bias].
template <typename T>
struct NormScale {
    float shift = 0.0F;
    float factor = 1.0F;
    const T* weight = nullptr;  ///< nullptr: left out
    float weight_offset = 0.0F;
    const T* bias = nullptr;  ///< nullptr: left out
};

/// Angles by which the pairs of every head turn: (x[i], x[pairs + i]), or (x[2i], x[2i + 1]) where `neighbours`.
struct HeadRotation {
    const float* cos = nullptr;  ///< [pairs]; of neighbours each twice
    const float* sin = nullptr;  ///< [pairs]; of neighbours each twice, first negated
    std::int64_t pairs = 0;
    std::int64_t stride = 0;  ///< elements from head to head
    bool neighbours = false;
};

/// For elements of one type, f32 or the bits of bf16; everything is computed in float and rounded when stored.
template <typename T>
struct ElementFunctions {
    /// y = op(x)
    void (*map)(Map op, float parameter, const T* x, std::int64_t count, T* y) = nullptr;
    /// y = activation(gate) * up
    void (*glu)(Activation activation, const T* gate, const T* up, std::int64_t count, T* y) = nullptr;
    /// y = a + b
    void (*add)(const T* a, const T* b, std::int64_t count, T* y) = nullptr;
    /// Sum (unless nullptr) and sum of squares, with the same bits on every machine.
    void (*norm_sums)(const T* row, std::int64_t count, double* sum, double& squares) = nullptr;
    void (*normalise)(const T* x, std::int64_t count, const NormScale<T>& scale, T* y) = nullptr;
    void (*rotate)(const T* x, const HeadRotation& rotation, std::int64_t heads, T* y) = nullptr;
};

struct ElementLoops {
    std::string_view name;  ///< as TileFunctions
    ElementFunctions<float> f32;
    ElementFunctions<std::uint16_t> bf16;
    /// y = g / (1 + exp(-1.702 g)) * (u + 1) with g = min(gate, limit) and u = up within +-limit: gpt_oss
    void (*clamped_glu)(const float* gate, const float* up, float limit, std::int64_t count, float* y) = nullptr;
    /// sums += factor * x
    void (*add_scaled)(const float* x, float factor, std::int64_t count, float* sums) = nullptr;
    /// Cosines and sines of position * frequency, the product rounded to float, in double and then rounded.
    void (*cos_sin)(float position, const float* frequencies, std::int64_t count, float* cos, float* sin) = nullptr;
    /// From the bits of f16.
    void (*widen_half)(const std::uint16_t* from, std::int64_t count, float* to) = nullptr;
};

/// Those this machine can run, best first.
const std::vector<ElementLoops>& available_element_loops();

inline const ElementLoops& element_loops() {
    return available_element_loops().front();
}

template <typename T>
const ElementFunctions<T>& element_functions() {
    if constexpr (sizeof(T) == sizeof(float)) {
        return element_loops().f32;
    } else {
        return element_loops().bf16;
    }
}

}  // namespace shardplan::kernels
