#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "base/checked.h"
#include "comm/communicator.h"

namespace shardplan::comm {

namespace {

std::int64_t add(std::int64_t a, std::int64_t b) {
    return base::checked_add(a, b);
}

double add(double a, double b) {
    return a + b;
}

template <typename T>
T combine(T a, T b, WorldOp op) {
    switch (op) {
        case WorldOp::sum: return add(a, b);
        case WorldOp::min: return std::min(a, b);
        case WorldOp::max: return std::max(a, b);
    }
    return a;
}

/// values = rows[0] op rows[1] op ...
template <typename T>
void combine_rows(const std::vector<T>& rows, std::span<T> values, WorldOp op) {
    std::copy_n(rows.begin(), values.size(), values.begin());
    for (std::size_t begin = values.size(); begin < rows.size(); begin += values.size()) {
        for (std::size_t i = 0; i < values.size(); ++i) {
            values[i] = combine(values[i], rows[begin + i], op);
        }
    }
}

}  // namespace

void World::all_reduce(std::span<std::int64_t> values, WorldOp op) {
    std::vector<std::int64_t> rows(values.size() * static_cast<std::size_t>(size()));
    all_gather(std::as_bytes(values), std::as_writable_bytes(std::span(rows)));
    combine_rows(rows, values, op);
}

void World::all_reduce(std::span<double> values, WorldOp op) {
    std::vector<double> rows(values.size() * static_cast<std::size_t>(size()));
    all_gather(std::as_bytes(values), std::as_writable_bytes(std::span(rows)));
    combine_rows(rows, values, op);
}

bool World::agree(bool ok) {
    std::int64_t value = ok ? 1 : 0;
    all_reduce(std::span(&value, 1), WorldOp::min);
    return value == 1;
}

bool World::same_everywhere(std::uint64_t value) {
    std::vector<std::uint64_t> values(static_cast<std::size_t>(size()));
    all_gather(std::as_bytes(std::span(&value, 1)), std::as_writable_bytes(std::span(values)));
    return std::all_of(values.begin(), values.end(), [value](std::uint64_t other) { return other == value; });
}

std::unique_ptr<Groups> World::groups(const mesh::Mesh& mesh) {
    return groups(mesh, GroupOptions::from_environment());
}

std::unique_ptr<Groups> World::groups(const mesh::Mesh& mesh, const GroupOptions& options) {
    if (mesh.device_count() != size()) {
        throw std::runtime_error(
            fmt::format("the mesh has {} devices, but there are {} ranks", mesh.device_count(), size()));
    }
    return std::make_unique<Groups>(mesh, rank(), options, transport(mesh, options));
}

}  // namespace shardplan::comm
