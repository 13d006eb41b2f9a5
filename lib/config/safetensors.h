// The safetensors format: 8 bytes little-endian length, a JSON header {name: {dtype, shape, data_offsets}}, then the
// tensors row-major without holes. Only headers are read here; where the data lies is the result.
// Strict, as files come from anywhere: every length, offset and shape is checked against the others and the file size.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diag/diagnostic.h"
#include "tensor/checkpoint.h"

namespace shardplan::config {

/// `path` is a .safetensors file, a .safetensors.index.json, or a directory with model.safetensors or
/// model.safetensors.index.json. Errors: SP7001, naming the file and the tensor; SP1001 for an unreadable index.
std::optional<tensor::Checkpoint> read_checkpoint(const std::string& path, diag::Diagnostics& diagnostics);

struct HeaderEntry {
    std::string name;
    tensor::DType dtype = tensor::DType::f32;
    tensor::Shape shape;
};

/// Length and header of a file that holds `entries` one after the other; a multiple of 8 bytes long.
/// @pre names are unique UTF-8, not "__metadata__"
std::string safetensors_header(const std::vector<HeaderEntry>& entries);

}  // namespace shardplan::config
