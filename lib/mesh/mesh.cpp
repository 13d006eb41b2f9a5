#include "mesh/mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <set>
#include <utility>

#include "base/checked.h"

namespace shardplan::mesh {

Mesh::Mesh(std::vector<Axis> axes) : axes_(std::move(axes)), strides_(axes_.size(), 1) {
    for (std::size_t i = axes_.size(); i-- > 0;) {
        strides_[i] = device_count_;
        device_count_ = base::checked_mul(device_count_, axes_[i].size);
    }
}

std::optional<AxisId> Mesh::find(std::string_view name) const {
    for (std::size_t i = 0; i < axes_.size(); ++i) {
        if (axes_[i].name == name) {
            return AxisId{static_cast<std::uint8_t>(i)};
        }
    }
    return std::nullopt;
}

std::int64_t Mesh::size(const AxisList& axes) const {
    std::int64_t product = 1;
    for (int i = 0; i < axes.size(); ++i) {
        product *= size(axes[i]);
    }
    return product;
}

std::int64_t Mesh::size(AxisSet axes) const {
    std::int64_t product = 1;
    for (int i = 0; i < axis_count(); ++i) {
        const AxisId id{static_cast<std::uint8_t>(i)};
        product *= axes.contains(id) ? size(id) : 1;
    }
    return product;
}

std::int64_t Mesh::coordinate(std::int64_t rank, AxisId id) const {
    return rank / strides_[static_cast<std::size_t>(index_of(id))] % size(id);
}

std::vector<std::int64_t> Mesh::coordinates(std::int64_t rank) const {
    std::vector<std::int64_t> result(axes_.size());
    for (std::size_t i = 0; i < axes_.size(); ++i) {
        result[i] = rank / strides_[i] % axes_[i].size;
    }
    return result;
}

std::int64_t Mesh::rank_of(const std::vector<std::int64_t>& coordinates) const {
    return std::inner_product(coordinates.begin(), coordinates.end(), strides_.begin(), std::int64_t{0});
}

std::int64_t Mesh::position(std::int64_t rank, const AxisList& axes) const {
    std::int64_t result = 0;
    for (int i = 0; i < axes.size(); ++i) {
        result = result * size(axes[i]) + coordinate(rank, axes[i]);
    }
    return result;
}

std::int64_t Mesh::rank_at(std::int64_t rank, const AxisList& axes, std::int64_t position) const {
    for (int i = axes.size(); i-- > 0;) {
        const AxisId id = axes[i];
        const std::int64_t stride = strides_[static_cast<std::size_t>(index_of(id))];
        rank += (position % size(id) - coordinate(rank, id)) * stride;
        position /= size(id);
    }
    return rank;
}

std::vector<std::int64_t> Mesh::group(std::int64_t rank, const AxisList& axes) const {
    std::vector<std::int64_t> result(static_cast<std::size_t>(size(axes)));
    for (std::size_t i = 0; i < result.size(); ++i) {
        result[i] = rank_at(rank, axes, static_cast<std::int64_t>(i));
    }
    return result;
}

std::vector<std::vector<std::int64_t>> Mesh::groups(const AxisList& axes) const {
    std::vector<std::vector<std::int64_t>> result;
    for (std::int64_t rank = 0; rank < device_count_; ++rank) {
        if (position(rank, axes) == 0) {
            result.push_back(group(rank, axes));
        }
    }
    return result;
}

namespace {

constexpr std::int64_t largest_mesh = std::int64_t{1} << 40;

bool check_axes(const std::vector<Axis>& axes, const std::string& pointer, diag::Diagnostics& diagnostics) {
    const std::size_t before = diagnostics.error_count();
    if (axes.empty() || axes.size() > max_axes) {
        diagnostics.report("SP3001", fmt::format("a mesh has 1 to {} axes, got {}", max_axes, axes.size()), pointer);
    }
    std::set<std::string> names;
    for (const Axis& axis : axes) {
        const std::string at = pointer + "/" + diag::escape_pointer(axis.name);
        if (axis.name.empty()) {
            diagnostics.report("SP3001", "a mesh axis needs a name", pointer);
        }
        if (!names.insert(axis.name).second) {
            diagnostics.report("SP3001", fmt::format("mesh axis '{}' stands twice", axis.name), at);
        }
        if (axis.size < 1 && axis.size != -1) {
            diagnostics.report("SP3001",
                               fmt::format("size of mesh axis '{}' must be at least 1, got {}", axis.name, axis.size),
                               at, "use -1 once to fill an axis from the number of devices");
        }
    }
    return diagnostics.error_count() == before;
}

std::string describe(const std::vector<Axis>& axes) {
    std::string text;
    for (const Axis& axis : axes) {
        text += fmt::format("{}{}={}", text.empty() ? "" : ",", axis.name, axis.size);
    }
    return text;
}

/// Replaces the -1 by devices / product of the others.
bool fill_wildcard(std::vector<Axis>& axes, std::optional<std::int64_t> devices, std::int64_t product,
                   const std::string& pointer, diag::Diagnostics& diagnostics) {
    const auto is_wildcard = [](const Axis& axis) { return axis.size == -1; };
    const auto count = std::count_if(axes.begin(), axes.end(), is_wildcard);
    if (count == 0) {
        return true;
    }
    const auto wildcard = std::find_if(axes.begin(), axes.end(), is_wildcard);
    const std::string at = pointer + "/" + diag::escape_pointer(wildcard->name);
    if (count > 1) {
        diagnostics.report("SP3002", fmt::format("only one axis may be -1, got {} in {}", count, describe(axes)), at,
                           "write the sizes of all axes but one");
        return false;
    }
    if (!devices) {
        diagnostics.report("SP3002",
                           fmt::format("axis '{}' is -1, but the number of devices is not given", wildcard->name), at,
                           "give mesh.devices (--ranks), or the size itself");
        return false;
    }
    if (*devices < 1) {
        diagnostics.report("SP3003", fmt::format("the number of devices must be at least 1, got {}", *devices),
                           pointer);
        return false;
    }
    if (*devices % product != 0) {
        diagnostics.report(
            "SP3002",
            fmt::format(
                "axis '{}' cannot be filled: {} devices are not a multiple of {}, the product of the other axes",
                wildcard->name, *devices, product),
            at,
            fmt::format("numbers of devices that work are {}, {}, ...",
                        std::max<std::int64_t>(1, *devices / product) * product, (*devices / product + 1) * product));
        return false;
    }
    wildcard->size = *devices / product;
    return true;
}

/// One axis changed so that the product becomes `devices`.
std::string other_sizes(const Mesh& mesh, std::int64_t devices) {
    std::string text;
    for (const Axis& axis : mesh.axes()) {
        const std::int64_t others = mesh.device_count() / axis.size;
        if (devices % others == 0) {
            text += fmt::format("{}{}={}", text.empty() ? "" : " or ", axis.name, devices / others);
        }
    }
    return text.empty() ? fmt::format("this mesh needs devices = {}", mesh.device_count())
                        : fmt::format("set {}, or mesh.devices (--ranks) to {}", text, mesh.device_count());
}

}  // namespace

std::optional<Mesh> make_mesh(const std::vector<Axis>& axes, std::optional<std::int64_t> devices,
                              const std::string& pointer, diag::Diagnostics& diagnostics) {
    if (!check_axes(axes, pointer, diagnostics)) {
        return std::nullopt;
    }
    std::int64_t product = 1;
    for (const Axis& axis : axes) {
        if (axis.size == -1) {
            continue;
        }
        if (axis.size > largest_mesh / product) {
            diagnostics.report("SP3001", fmt::format("mesh {} has more than {} devices", describe(axes), largest_mesh),
                               pointer);
            return std::nullopt;
        }
        product *= axis.size;
    }
    std::vector<Axis> filled = axes;
    if (!fill_wildcard(filled, devices, product, pointer, diagnostics)) {
        return std::nullopt;
    }
    Mesh mesh(filled);
    if (devices && mesh.device_count() != *devices) {
        diagnostics.report(
            "SP3003",
            fmt::format("mesh {} has {} devices, but {} are given", describe(filled), mesh.device_count(), *devices),
            pointer, other_sizes(mesh, *devices));
        return std::nullopt;
    }
    return mesh;
}

std::optional<std::vector<Axis>> parse_axes(std::string_view text, const std::string& pointer,
                                            diag::Diagnostics& diagnostics) {
    std::vector<Axis> axes;
    while (true) {
        const std::size_t comma = std::min(text.find(','), text.size());
        const std::string_view item = text.substr(0, comma);
        const std::size_t separator = item.find_first_of("=:");
        Axis axis;
        axis.name = std::string(item.substr(0, std::min(separator, item.size())));
        const std::string_view digits = separator == std::string_view::npos ? "" : item.substr(separator + 1);
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), axis.size);
        if (axis.name.empty() || error != std::errc{} || end != digits.data() + digits.size()) {
            diagnostics.report("SP3001", fmt::format("'{}' is not a mesh axis", item), pointer,
                               "write axes as name=size, e.g. dp=2,tp=4");
            return std::nullopt;
        }
        axes.push_back(axis);
        if (comma == text.size()) {
            return axes;
        }
        text.remove_prefix(comma + 1);
    }
}

AxisSet nontrivial_axes(const Mesh& mesh) {
    AxisSet result;
    for (int i = 0; i < mesh.axis_count(); ++i) {
        const AxisId id{static_cast<std::uint8_t>(i)};
        if (mesh.size(id) > 1) {
            result.insert(id);
        }
    }
    return result;
}

}  // namespace shardplan::mesh
