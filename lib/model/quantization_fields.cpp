#include "model/quantization_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>

namespace shardplan::model {
namespace {

constexpr std::int64_t largest_group = 1 << 20;

/// 0 for "per row" (-1, null or absent).
std::int64_t group_size(FieldReader& fields, FieldReader::Keys keys) {
    const ConfigValue* value = fields.find(keys);
    if (value != nullptr && value->integer() != nullptr && *value->integer() == -1) {
        return 0;
    }
    if (value != nullptr && value->integer() != nullptr && *value->integer() < 1) {
        fields.report("SP1006", keys,
                      fmt::format("{} must lie in 1 ... {}, or be -1 (one scale per channel), not {}", key_of(*value),
                                  largest_group, *value->integer()));
        return 0;
    }
    return fields.optional_size(keys, largest_group).value_or(0);
}

void read_block(FieldReader& fields, QuantizationSpec& result) {
    const ConfigValue* block = fields.find({"weight_block_size"});
    if (block == nullptr) {
        return;
    }
    const ConfigValue::Array* sizes = block->array();
    if (sizes == nullptr || sizes->size() != 2 ||
        !std::all_of(sizes->begin(), sizes->end(), [](const ConfigValue& size) { return size.integer() != nullptr; })) {
        fields.wrong_type(*block, "a pair of block sizes [rows, columns]");
        return;
    }
    for (const ConfigValue& size : *sizes) {
        if (*size.integer() < 1 || *size.integer() > largest_group) {
            fields.report("SP1006", {"weight_block_size"},
                          fmt::format("both sizes of weight_block_size must lie in 1 ... {}, not {}", largest_group,
                                      *size.integer()));
            return;
        }
    }
    result.rows = *(*sizes)[0].integer();
    result.group = std::max(result.group, *(*sizes)[1].integer());
}

/// What formats with a fixed group imply: 32 elements share a scale in the OCP MX formats, 16 in NVFP4.
std::int64_t implied_group(FieldReader& fields) {
    for (const std::string_view key : {"quant_method", "quant_algo", "fmt", "format"}) {
        const ConfigValue* value = fields.find({key});
        std::string name = value != nullptr && value->string() != nullptr ? *value->string() : std::string();
        std::transform(name.begin(), name.end(), name.begin(),
                       [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        if (name.starts_with("mxfp4") || name.starts_with("mxfp6") || name.starts_with("mxfp8")) {
            return 32;
        }
        if (name.starts_with("nvfp4")) {
            return 16;
        }
    }
    return 0;
}

}  // namespace

bool read_quantization(const ConfigValue& quantization, diag::Diagnostics& diagnostics, QuantizationSpec& result) {
    FieldReader fields(quantization, diagnostics);
    result.group = group_size(fields, {"group_size", "q_group_size"});
    if (result.group == 0) {
        result.group = implied_group(fields);
    }
    read_block(fields, result);
    bool good = fields.ok();
    const ConfigValue* groups = fields.find({"config_groups"});
    if (groups == nullptr || groups->object() == nullptr) {
        return good;
    }
    for (const auto& [name, group] : *groups->object()) {
        const ConfigValue* weights = group.is_object() ? group.find("weights") : nullptr;
        if (weights != nullptr && weights->is_object()) {
            FieldReader below(*weights, diagnostics);
            result.group = std::max(result.group, group_size(below, {"group_size"}));
            good = good && below.ok();
        }
    }
    return good;
}

}  // namespace shardplan::model
