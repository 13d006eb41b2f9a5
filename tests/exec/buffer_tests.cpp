#include "exec/buffer.h"

#include <doctest/doctest.h>

#include <vector>

#include <cmath>
#include <cstdint>
#include <utility>

using namespace shardplan;
using exec::Allocator;
using exec::Buffer;
using exec::Category;

TEST_CASE("current and peak bytes follow the life of buffers, each category for itself") {
    Allocator allocator;
    {
        const Buffer a(allocator, Category::activations, 100);
        {
            const Buffer b(allocator, Category::activations, 40);
            const Buffer c(allocator, Category::communication, 7);
            CHECK(allocator.current(Category::activations) == 140);
        }
        const Buffer d(allocator, Category::activations, 10);
        CHECK(allocator.current(Category::activations) == 110);
    }
    CHECK(allocator.current(Category::activations) == 0);
    CHECK(allocator.peak(Category::activations) == 140);
    CHECK(allocator.peak(Category::communication) == 7);
    CHECK(allocator.peak(Category::parameters) == 0);
}

TEST_CASE("buffers are aligned, counted as asked for, and may be empty") {
    Allocator allocator;
    for (const std::int64_t bytes : {0, 1, 63, 64, 65, 4097}) {
        const Buffer buffer(allocator, Category::cache, bytes);
        CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % Buffer::alignment == 0);
        CHECK(allocator.current(Category::cache) == bytes);
        CHECK(static_cast<bool>(buffer));
    }
    CHECK_FALSE(static_cast<bool>(Buffer()));
}

TEST_CASE("a moved buffer is counted once") {
    Allocator allocator;
    Buffer a(allocator, Category::activations, 32);
    Buffer b(allocator, Category::activations, 8);
    const std::byte* data = a.data();
    b = std::move(a);
    CHECK(b.data() == data);
    CHECK(allocator.current(Category::activations) == 32);
    b = Buffer();
    CHECK(allocator.current(Category::activations) == 0);
    CHECK(allocator.peak(Category::activations) == 40);
}

TEST_CASE("poisoned memory reads as NaN in both float types") {
    Allocator allocator(true);
    const Buffer buffer(allocator, Category::activations, 8);
    CHECK(std::isnan(buffer.view(tensor::DType::f32, {2}).as<float>()[1]));
    CHECK(std::isnan(tensor::float_from_bf16(buffer.view(tensor::DType::bf16, {4}).as<std::uint16_t>()[3])));
}

TEST_CASE("a reservation counts what others hold") {
    Allocator allocator;
    exec::Reservation a(allocator, Category::scratch, 5);
    exec::Reservation b = std::move(a);
    CHECK(allocator.current(Category::scratch) == 5);
    b = exec::Reservation();
    CHECK(allocator.current(Category::scratch) == 0);
    CHECK(exec::to_string(Category::scratch) == "scratch");
}

TEST_CASE("what the process holds at most grows with what it holds") {
    const std::int64_t before = exec::peak_resident_bytes();
    const std::vector<char> memory(64 << 20, 1);
    CHECK(exec::peak_resident_bytes() >= before + (32 << 20));
    CHECK(memory[12345] == 1);
}
