#include "partition/layout.h"

#include "base/hash.h"

namespace shardplan::partition {

mesh::AxisSet Layout::sharded() const {
    mesh::AxisSet result;
    for (int d = 0; d < rank; ++d) {
        result = result | (*this)[d].set();
    }
    return result;
}

std::size_t hash_value(const Layout& layout) {
    std::uint64_t state = layout.pending.bits();
    for (int d = 0; d < layout.rank; ++d) {
        const mesh::AxisList& axes = layout[d];
        std::uint64_t word = static_cast<std::uint64_t>(axes.size());
        for (int i = 0; i < axes.size(); ++i) {
            word = word * 16 + static_cast<std::uint64_t>(mesh::index_of(axes[i])) + 1;
        }
        state = base::splitmix64(state ^ word);
    }
    return static_cast<std::size_t>(state);
}

bool is_consistent(const Layout& layout) {
    mesh::AxisSet seen = layout.pending;
    for (int d = 0; d < layout.rank; ++d) {
        for (int i = 0; i < layout[d].size(); ++i) {
            if (seen.contains(layout[d][i])) {
                return false;
            }
            seen.insert(layout[d][i]);
        }
    }
    return true;
}

bool divides(const Layout& layout, const tensor::Shape& shape, const mesh::Mesh& mesh) {
    for (int d = 0; d < layout.rank; ++d) {
        if (shape[static_cast<std::size_t>(d)] % mesh.size(layout[d]) != 0) {
            return false;
        }
    }
    return true;
}

std::int64_t shard_count(const Layout& layout, const mesh::Mesh& mesh) {
    std::int64_t count = 1;
    for (int d = 0; d < layout.rank; ++d) {
        count *= mesh.size(layout[d]);
    }
    return count;
}

tensor::Shape local_shape(const Layout& layout, const tensor::Shape& shape, const mesh::Mesh& mesh) {
    tensor::Shape local = shape;
    for (int d = 0; d < layout.rank; ++d) {
        local[static_cast<std::size_t>(d)] /= mesh.size(layout[d]);
    }
    return local;
}

std::vector<base::Interval> local_ranges(const Layout& layout, const tensor::Shape& shape, const mesh::Mesh& mesh,
                                         std::int64_t rank) {
    std::vector<base::Interval> ranges;
    for (int d = 0; d < layout.rank; ++d) {
        const std::int64_t block = shape[static_cast<std::size_t>(d)] / mesh.size(layout[d]);
        const std::int64_t begin = block * mesh.position(rank, layout[d]);
        ranges.push_back({begin, begin + block});
    }
    return ranges;
}

std::string to_string(const Layout& layout, const mesh::Mesh& mesh) {
    std::string text;
    for (int d = 0; d < layout.rank; ++d) {
        text += '[';
        for (int i = 0; i < layout[d].size(); ++i) {
            text += (i == 0 ? "'" : ",'") + mesh.name(layout[d][i]) + "'";
        }
        text += ']';
    }
    if (!layout.pending.empty()) {
        text += " pending {";
        for (int i = 0; i < mesh.axis_count(); ++i) {
            const mesh::AxisId id{static_cast<std::uint8_t>(i)};
            if (layout.pending.contains(id)) {
                text += (text.back() == '{' ? "'" : ",'") + mesh.name(id) + "'";
            }
        }
        text += '}';
    }
    return text;
}

}  // namespace shardplan::partition
