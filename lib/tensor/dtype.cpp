#include "tensor/dtype.h"

#include <array>
#include <cmath>

namespace shardplan::tensor {
namespace {

struct Row {
    DType dtype;
    std::int64_t bytes;
    std::string_view name;
    std::string_view safetensors;
    std::string_view long_name;
};

constexpr std::array rows = {
    Row{DType::f32, 4, "f32", "F32", "float32"}, Row{DType::bf16, 2, "bf16", "BF16", "bfloat16"},
    Row{DType::f16, 2, "f16", "F16", "float16"}, Row{DType::f64, 8, "f64", "F64", "float64"},
    Row{DType::i64, 8, "i64", "I64", "int64"},   Row{DType::i32, 4, "i32", "I32", "int32"},
    Row{DType::i16, 2, "i16", "I16", "int16"},   Row{DType::i8, 1, "i8", "I8", "int8"},
    Row{DType::u8, 1, "u8", "U8", "uint8"},      Row{DType::boolean, 1, "bool", "BOOL", "boolean"},
};

const Row& row_of(DType dtype) {
    return rows[static_cast<std::size_t>(dtype)];
}

}  // namespace

std::int64_t size_of(DType dtype) {
    return row_of(dtype).bytes;
}

std::string_view to_string(DType dtype) {
    return row_of(dtype).name;
}

std::string_view safetensors_name(DType dtype) {
    return row_of(dtype).safetensors;
}

std::optional<DType> parse_safetensors_dtype(std::string_view name) {
    for (const Row& row : rows) {
        if (row.safetensors == name) {
            return row.dtype;
        }
    }
    return std::nullopt;
}

std::optional<DType> parse_dtype(std::string_view name) {
    constexpr std::string_view prefix = "torch.";
    if (name.starts_with(prefix)) {
        name.remove_prefix(prefix.size());
    }
    for (const Row& row : rows) {
        if (row.name == name || row.long_name == name) {
            return row.dtype;
        }
    }
    if (name == "half") {
        return DType::f16;
    }
    if (name == "float") {
        return DType::f32;
    }
    return std::nullopt;
}

float float_from_f16(std::uint16_t value) {
    const int exponent = (value >> 10) & 0x1f;
    const int mantissa = value & 0x3ff;
    const float sign = (value & 0x8000) != 0 ? -1.0F : 1.0F;
    if (exponent == 0) {
        return sign * std::ldexp(static_cast<float>(mantissa), -24);
    }
    if (exponent == 31) {
        return mantissa == 0 ? sign * INFINITY : NAN;
    }
    return sign * std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
}

}  // namespace shardplan::tensor
