#include "tensor/dtype.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

using namespace shardplan::tensor;

TEST_CASE("every type has one row of size and names") {
    struct Row {
        DType dtype;
        std::int64_t bytes;
        const char* name;
        const char* long_name;
        const char* safetensors;
    };
    const Row rows[] = {
        {DType::f32, 4, "f32", "float32", "F32"}, {DType::bf16, 2, "bf16", "bfloat16", "BF16"},
        {DType::f16, 2, "f16", "float16", "F16"}, {DType::f64, 8, "f64", "float64", "F64"},
        {DType::i64, 8, "i64", "int64", "I64"},   {DType::i32, 4, "i32", "int32", "I32"},
        {DType::i16, 2, "i16", "int16", "I16"},   {DType::i8, 1, "i8", "int8", "I8"},
        {DType::u8, 1, "u8", "uint8", "U8"},      {DType::boolean, 1, "bool", "boolean", "BOOL"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(size_of(row.dtype) == row.bytes);
        CHECK(to_string(row.dtype) == row.name);
        CHECK(safetensors_name(row.dtype) == row.safetensors);
        CHECK(parse_dtype(row.name) == row.dtype);
        CHECK(parse_dtype(row.long_name) == row.dtype);
        CHECK(parse_dtype(std::string("torch.") + row.long_name) == row.dtype);
        CHECK(parse_safetensors_dtype(row.safetensors) == row.dtype);
    }
}

TEST_CASE("other spellings of types") {
    CHECK(parse_dtype("half") == DType::f16);
    CHECK(parse_dtype("float") == DType::f32);
    CHECK(parse_dtype("torch.half") == DType::f16);
    for (const char* unknown : {"", "torch.", "F32", "float8", "f31", "bf16 ", "jnp.float32", "torch.torch.float32"}) {
        CAPTURE(unknown);
        CHECK_FALSE(parse_dtype(unknown).has_value());
    }
    for (const char* unknown : {"", "f32", "F8_E4M3", "BF16 "}) {
        CAPTURE(unknown);
        CHECK_FALSE(parse_safetensors_dtype(unknown).has_value());
    }
}

TEST_CASE("float_from_f16 is exact") {
    struct Row {
        std::uint16_t bits;
        float value;
    };
    const Row rows[] = {
        {0x0000, 0.0F},
        {0x0001, 0x1p-24F},
        {0x03ff, 0x3ffp-24F},
        {0x0400, 0x1p-14F},
        {0x3555, 0x1.554p-2F},
        {0x3c00, 1.0F},
        {0x3c01, 1.0F + 0x1p-10F},
        {0xc000, -2.0F},
        {0x7bff, 65504.0F},
        {0x7c00, std::numeric_limits<float>::infinity()},
        {0xfc00, -std::numeric_limits<float>::infinity()},
    };
    for (const Row& row : rows) {
        CAPTURE(row.bits);
        CHECK(float_from_f16(row.bits) == row.value);
    }
    CHECK(std::signbit(float_from_f16(0x8000)));
    CHECK(std::isnan(float_from_f16(0x7c01)));
    CHECK(std::isnan(float_from_f16(0xfe00)));
}

TEST_CASE("float_from_f16 grows with the bits and is odd") {
    for (std::uint32_t bits = 0; bits < 0x7c00; ++bits) {
        const float value = float_from_f16(static_cast<std::uint16_t>(bits));
        REQUIRE(value < float_from_f16(static_cast<std::uint16_t>(bits + 1)));
        REQUIRE(-value == float_from_f16(static_cast<std::uint16_t>(bits | 0x8000U)));
    }
}
