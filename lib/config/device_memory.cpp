#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "config/job_fields.h"
#include "config/job_sections.h"
#include "config/object_reader.h"

namespace shardplan::config {
namespace {

using model::ConfigValue;

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/// Bytes, or text with a unit; nothing after a diagnostic.
std::optional<std::int64_t> read_bytes(const ConfigValue& value, diag::Diagnostics& diagnostics) {
    constexpr std::int64_t most = fields::device_memory.highest;
    constexpr std::string_view expected = R"(bytes as an integer, or text such as "80GB" or "79.5GiB")";
    if (value.is_null() || value.is_object() || value.array() != nullptr || value.boolean() != nullptr) {
        report_type(value, expected, diagnostics);
        return std::nullopt;
    }
    if (value.string() == nullptr) {
        return read_integer(value, fields::device_memory.lowest, most, diagnostics);
    }
    static constexpr auto units = std::to_array<std::pair<std::string_view, double>>({{"B", 1.0},
                                                                                      {"KB", 1e3},
                                                                                      {"MB", 1e6},
                                                                                      {"GB", 1e9},
                                                                                      {"TB", 1e12},
                                                                                      {"KiB", 0x1p10},
                                                                                      {"MiB", 0x1p20},
                                                                                      {"GiB", 0x1p30},
                                                                                      {"TiB", 0x1p40}});
    const std::string& text = *value.string();
    double number = 0.0;
    const char* last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, number, std::chars_format::fixed);
    std::string_view unit(end, static_cast<std::size_t>(last - end));
    unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
    const auto* found = std::find_if(units.begin(), units.end(), [&](const auto& row) { return row.first == unit; });
    if (error != std::errc{} || found == units.end() || !is_digit(text.front()) || !is_digit(*(end - 1))) {
        report_type(value, expected, diagnostics);
        return std::nullopt;
    }
    const double bytes = std::floor(number * found->second);
    if (bytes < 1.0 || bytes > static_cast<double>(most)) {
        diagnostics.report(
            "SP1006",
            fmt::format("{} must lie in 1 ... {} bytes, not {}", dotted(value.pointer), most, describe(value)),
            value.pointer);
        return std::nullopt;
    }
    return static_cast<std::int64_t>(bytes);
}

}  // namespace

/// Every device holds an equal share, so that of devices of different sizes the smallest decides.
void read_device_memory(const ConfigValue& value, plan::Job& job, diag::Diagnostics& diagnostics) {
    const ConfigValue::Array* list = value.array();
    if (list == nullptr) {
        job.device_memory = read_bytes(value, diagnostics);
        return;
    }
    const std::int64_t devices = job.mesh.device_count();
    const bool mesh_known = job.mesh.axis_count() > 0;  // else an error of the mesh was reported
    if ((mesh_known && std::ssize(*list) != devices) || list->empty()) {
        diagnostics.report(
            "SP1006",
            fmt::format("device_memory is a list of {} sizes, the mesh has {} devices", list->size(), devices),
            value.pointer, "give one size for all devices, or one for each in the order of the ranks");
        return;
    }
    std::optional<std::int64_t> largest;
    std::size_t smallest = 0;
    for (std::size_t i = 0; i < list->size(); ++i) {
        const auto bytes = read_bytes((*list)[i], diagnostics);
        if (!bytes) {
            return;
        }
        smallest = !job.device_memory || *bytes < *job.device_memory ? i : smallest;
        job.device_memory = std::min(job.device_memory.value_or(*bytes), *bytes);
        largest = std::max(largest.value_or(*bytes), *bytes);
    }
    if (largest != job.device_memory) {
        diagnostics.report("SP2004",
                           fmt::format("devices have from {} to {} bytes; each holds an equal share, so that device {} "
                                       "with {} decides",
                                       *job.device_memory, *largest, smallest, *job.device_memory),
                           value.pointer);
    }
}

}  // namespace shardplan::config
