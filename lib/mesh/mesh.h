// A Mesh: ordered named axes with sizes. The last axis varies fastest with the rank, as numpy's
// arange(n).reshape(sizes) (JAX Mesh). Knows nothing of tensors.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diag/diagnostic.h"

namespace shardplan::mesh {

inline constexpr int max_axes = 15;

/// Index of an axis in its mesh.
enum class AxisId : std::uint8_t {};
constexpr int index_of(AxisId id) {
    return static_cast<int>(id);
}

/// A set of axes as a bit mask.
class AxisSet {
public:
    constexpr AxisSet() = default;
    constexpr AxisSet(std::initializer_list<AxisId> ids) {
        for (const AxisId id : ids) {
            insert(id);
        }
    }
    constexpr void insert(AxisId id) { bits_ |= 1U << index_of(id); }
    constexpr void erase(AxisId id) { bits_ &= ~(1U << index_of(id)); }
    constexpr bool contains(AxisId id) const { return (bits_ >> index_of(id) & 1U) != 0; }
    constexpr bool empty() const { return bits_ == 0; }
    constexpr bool intersects(AxisSet other) const { return (bits_ & other.bits_) != 0; }
    constexpr bool includes(AxisSet other) const { return (bits_ & other.bits_) == other.bits_; }
    constexpr std::uint32_t bits() const { return bits_; }
    friend constexpr AxisSet operator|(AxisSet a, AxisSet b) { return AxisSet(a.bits_ | b.bits_); }
    friend constexpr AxisSet operator&(AxisSet a, AxisSet b) { return AxisSet(a.bits_ & b.bits_); }
    friend constexpr AxisSet operator-(AxisSet a, AxisSet b) { return AxisSet(a.bits_ & ~b.bits_); }
    friend constexpr bool operator==(AxisSet, AxisSet) = default;

private:
    explicit constexpr AxisSet(std::uint32_t bits) : bits_(bits) {}
    std::uint32_t bits_ = 0;
};

/// An ordered list of axes, left = major; no duplicates.
class AxisList {
public:
    constexpr AxisList() = default;
    constexpr AxisList(std::initializer_list<AxisId> ids) {
        for (const AxisId id : ids) {
            push_back(id);
        }
    }
    constexpr int size() const { return count_; }
    constexpr bool empty() const { return count_ == 0; }
    constexpr AxisId operator[](int i) const { return AxisId{ids_[static_cast<std::size_t>(i)]}; }
    constexpr AxisId back() const { return (*this)[count_ - 1]; }
    constexpr void push_back(AxisId id) { ids_[static_cast<std::size_t>(count_++)] = static_cast<std::uint8_t>(id); }
    constexpr void pop_back() { ids_[static_cast<std::size_t>(--count_)] = 0; }
    /// The first n axes.
    constexpr AxisList prefix(int n) const {
        AxisList result;
        for (int i = 0; i < n; ++i) {
            result.push_back((*this)[i]);
        }
        return result;
    }
    /// The axes from position n on.
    constexpr AxisList suffix_from(int n) const {
        AxisList result;
        for (int i = n; i < count_; ++i) {
            result.push_back((*this)[i]);
        }
        return result;
    }
    constexpr bool starts_with(const AxisList& head) const {
        return head.count_ <= count_ && prefix(head.count_) == head;
    }
    constexpr AxisSet set() const {
        AxisSet result;
        for (int i = 0; i < count_; ++i) {
            result.insert((*this)[i]);
        }
        return result;
    }
    friend constexpr bool operator==(const AxisList&, const AxisList&) = default;

private:
    std::uint8_t count_ = 0;
    std::array<std::uint8_t, max_axes> ids_{};
};

struct Axis {
    std::string name;
    std::int64_t size = 1;
    friend bool operator==(const Axis&, const Axis&) = default;
};

class Mesh {
public:
    Mesh() = default;
    /// @pre sizes >= 1, names unique and not empty, at most max_axes; use make_mesh for unchecked input.
    explicit Mesh(std::vector<Axis> axes);

    const std::vector<Axis>& axes() const { return axes_; }
    int axis_count() const { return static_cast<int>(axes_.size()); }
    std::int64_t size(AxisId id) const { return axes_[static_cast<std::size_t>(index_of(id))].size; }
    const std::string& name(AxisId id) const { return axes_[static_cast<std::size_t>(index_of(id))].name; }
    std::optional<AxisId> find(std::string_view name) const;

    /// Product of all sizes.
    std::int64_t device_count() const { return device_count_; }
    std::int64_t size(const AxisList& axes) const;
    std::int64_t size(AxisSet axes) const;

    /// Coordinate of `rank` on one axis.
    std::int64_t coordinate(std::int64_t rank, AxisId id) const;
    std::vector<std::int64_t> coordinates(std::int64_t rank) const;
    std::int64_t rank_of(const std::vector<std::int64_t>& coordinates) const;

    /// Position of `rank` in its group along `axes`: mixed-radix number of its coordinates, axes[0] most significant.
    std::int64_t position(std::int64_t rank, const AxisList& axes) const;
    /// `rank` moved to `position` of its group along `axes`.
    std::int64_t rank_at(std::int64_t rank, const AxisList& axes, std::int64_t position) const;
    /// The ranks that share all coordinates but those on `axes` with `rank`, in order of position.
    std::vector<std::int64_t> group(std::int64_t rank, const AxisList& axes) const;
    /// All groups along `axes`, each in order of position, ordered by their first rank.
    std::vector<std::vector<std::int64_t>> groups(const AxisList& axes) const;

    friend bool operator==(const Mesh& a, const Mesh& b) { return a.axes_ == b.axes_; }

private:
    std::vector<Axis> axes_;
    std::vector<std::int64_t> strides_;  ///< ranks between neighbours along each axis
    std::int64_t device_count_ = 1;
};

/// Checks axes as written in a job: sizes >= 1 or one -1, which is filled from `devices`; unique names; product equal
/// to `devices` when given. Errors go to `diagnostics` under `pointer` + "/" + name. Rules: semantics 1d (eformer mesh
/// creation).
std::optional<Mesh> make_mesh(const std::vector<Axis>& axes, std::optional<std::int64_t> devices,
                              const std::string& pointer, diag::Diagnostics& diagnostics);

/// "dp=2,tp=4" (also ":" as separator), order kept.
std::optional<std::vector<Axis>> parse_axes(std::string_view text, const std::string& pointer,
                                            diag::Diagnostics& diagnostics);

/// Every axis of size > 1.
AxisSet nontrivial_axes(const Mesh& mesh);

}  // namespace shardplan::mesh
