// Element types, named as in safetensors and Hugging Face configs.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

namespace shardplan::tensor {

enum class DType : std::uint8_t { f32, bf16, f16, f64, i64, i32, i16, i8, u8, boolean };

/// Bytes of one element.
std::int64_t size_of(DType dtype);

/// "f32", "bf16", ... as in job files.
std::string_view to_string(DType dtype);

/// The spelling of the safetensors format: "F32", "BF16", ...
std::string_view safetensors_name(DType dtype);
std::optional<DType> parse_safetensors_dtype(std::string_view name);

/// Accepts "f32", "float32", "bf16", "bfloat16", "torch.bfloat16", ...
std::optional<DType> parse_dtype(std::string_view name);

/// Round to nearest even; NaN stays NaN.
inline std::uint16_t bf16_from_float(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7fffffffU) > 0x7f800000U) {
        return static_cast<std::uint16_t>((bits >> 16) | 0x0040U);
    }
    return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

inline float float_from_bf16(std::uint16_t value) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
}

/// IEEE binary16, exact.
float float_from_f16(std::uint16_t value);

}  // namespace shardplan::tensor
