// Layouts by a short notation, and random reshards, for tests of layouts and of resharding.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/tensors.h"
#include "mesh/mesh.h"
#include "partition/layout.h"
#include "tensor/shape.h"

namespace shardplan::test {

inline std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts(1);
    for (const char c : text) {
        if (c == separator) {
            parts.emplace_back();
        } else {
            parts.back() += c;
        }
    }
    return parts;
}

/// "dp=2,tp=4"
inline mesh::Mesh mesh_of(std::string_view axes) {
    std::vector<mesh::Axis> list;
    for (const std::string& axis : split(axes, ',')) {
        const std::size_t equals = axis.find('=');
        list.push_back({axis.substr(0, equals), std::stoll(axis.substr(equals + 1))});
    }
    return mesh::Mesh(list);
}

inline mesh::AxisList axes_of(std::string_view names, const mesh::Mesh& mesh) {
    mesh::AxisList axes;
    for (const std::string& name : split(names, ',')) {
        if (!name.empty()) {
            axes.push_back(mesh.find(name).value());
        }
    }
    return axes;
}

/// "a,b||c +d": dimension 0 over ('a','b'), dimension 1 whole, dimension 2 over 'c', pending over 'd'.
inline partition::Layout layout_of(std::string_view text, const mesh::Mesh& mesh) {
    const std::size_t plus = text.find(" +");
    const auto dims = split(text.substr(0, plus), '|');
    partition::Layout layout = partition::Layout::replicated(static_cast<int>(dims.size()));
    for (std::size_t d = 0; d < dims.size(); ++d) {
        layout.dims[d] = axes_of(dims[d], mesh);
    }
    if (plus != std::string_view::npos) {
        layout.pending = axes_of(text.substr(plus + 2), mesh).set();
    }
    return layout;
}

struct ReshardCase {
    mesh::Mesh mesh;
    tensor::Shape shape;
    partition::Layout from;
    partition::Layout to;

    std::string text() const {
        std::string axes;
        for (const mesh::Axis& axis : mesh.axes()) {
            axes += fmt::format("{}={} ", axis.name, axis.size);
        }
        return fmt::format("{}{}: {} -> {}", axes, tensor::to_string(shape), to_string(from, mesh),
                           to_string(to, mesh));
    }
};

/// 1 to 4 axes of sizes 1 to 4, at most `most_devices` together.
inline mesh::Mesh random_mesh(Random& random, std::int64_t most_devices) {
    std::vector<mesh::Axis> axes;
    std::int64_t devices = 1;
    const std::int64_t count = 1 + random.below(4);
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t size = 1 + random.below(4);
        const bool fits = devices * size <= most_devices;
        axes.push_back({std::string(1, static_cast<char>('a' + i)), fits ? size : 1});
        devices *= axes.back().size;
    }
    return mesh::Mesh(axes);
}

/// The axes of the mesh in any order, each in a dimension, pending (when allowed), or unused.
inline partition::Layout random_layout(Random& random, const mesh::Mesh& mesh, int rank, mesh::AxisSet may_pend) {
    std::vector<int> order(static_cast<std::size_t>(mesh.axis_count()));
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = order.size(); i > 1; --i) {
        std::swap(order[i - 1], order[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
    }
    partition::Layout layout = partition::Layout::replicated(rank);
    for (const int index : order) {
        const mesh::AxisId axis{static_cast<std::uint8_t>(index)};
        const auto place = static_cast<int>(random.below(rank + 2));
        if (place < rank) {
            layout[place].push_back(axis);
        } else if (place == rank && may_pend.contains(axis)) {
            layout.pending.insert(axis);
        }
    }
    return layout;
}

inline mesh::AxisSet all_axes(const mesh::Mesh& mesh) {
    mesh::AxisSet axes;
    for (int i = 0; i < mesh.axis_count(); ++i) {
        axes.insert(mesh::AxisId{static_cast<std::uint8_t>(i)});
    }
    return axes;
}

/// The shape is the smallest that both layouts divide: a path over anything larger than their parts would not fit.
inline ReshardCase random_reshard(Random& random, mesh::Mesh mesh) {
    const int rank = 1 + static_cast<int>(random.below(4));
    ReshardCase result{std::move(mesh), {}, {}, {}};
    result.from = random_layout(random, result.mesh, rank, all_axes(result.mesh));
    result.to = random_layout(random, result.mesh, rank, result.from.pending);
    for (int d = 0; d < rank; ++d) {
        result.shape.push_back(std::lcm(result.mesh.size(result.from[d]), result.mesh.size(result.to[d])));
    }
    return result;
}

}  // namespace shardplan::test
