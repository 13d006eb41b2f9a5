// One .safetensors file: its header, checked.
#pragma once

#include <string>

#include "diag/diagnostic.h"
#include "tensor/checkpoint.h"

namespace shardplan::config {

/// Adds the tensors of `path` to `checkpoint`; SP7001 for anything wrong, a tensor that is there already included.
void read_safetensors_file(const std::string& path, tensor::Checkpoint& checkpoint, diag::Diagnostics& diagnostics);

}  // namespace shardplan::config
