// Layout: how a tensor lies on a mesh. Each dimension is cut over an ordered list of axes (left = major); over
// `pending` axes every device holds a partial sum of the value; over all other axes the value is replicated.
// Replicated, sharded and pending are the only states (DTensor's Replicate, Shard, Partial).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/interval.h"
#include "mesh/mesh.h"
#include "tensor/shape.h"

namespace shardplan::partition {

inline constexpr int max_rank = 5;

struct Layout {
    std::uint8_t rank = 0;
    std::array<mesh::AxisList, max_rank> dims{};
    mesh::AxisSet pending;

    static Layout replicated(int rank) {
        Layout layout;
        layout.rank = static_cast<std::uint8_t>(rank);
        return layout;
    }
    mesh::AxisList& operator[](int dim) { return dims[static_cast<std::size_t>(dim)]; }
    const mesh::AxisList& operator[](int dim) const { return dims[static_cast<std::size_t>(dim)]; }
    /// Axes that cut some dimension.
    mesh::AxisSet sharded() const;
    friend bool operator==(const Layout&, const Layout&) = default;
};

std::size_t hash_value(const Layout& layout);

/// True when no axis is used twice (in dimensions and pending) .
bool is_consistent(const Layout& layout);

/// True when every dimension is a multiple of the product of its axes.
bool divides(const Layout& layout, const tensor::Shape& shape, const mesh::Mesh& mesh);

/// Product of the sizes of the sharding axes: into how many different parts the tensor is cut.
std::int64_t shard_count(const Layout& layout, const mesh::Mesh& mesh);

/// Shape of each device's part. @pre divides(layout, shape, mesh)
tensor::Shape local_shape(const Layout& layout, const tensor::Shape& shape, const mesh::Mesh& mesh);

/// The index range of each dimension that `rank` holds. @pre divides
std::vector<base::Interval> local_ranges(const Layout& layout, const tensor::Shape& shape, const mesh::Mesh& mesh,
                                         std::int64_t rank);

/// "['a','b'][]['c'] pending {'d'}": for messages and tests.
std::string to_string(const Layout& layout, const mesh::Mesh& mesh);

}  // namespace shardplan::partition
