// Where the tensors of a checkpoint lie on disk (safetensors: raw row-major data at an offset of a file).
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace shardplan::tensor {

struct CheckpointEntry {
    std::string file;  ///< path of the .safetensors file
    DType dtype = DType::f32;
    Shape shape;
    std::int64_t offset = 0;  ///< bytes from the beginning of the file
};

/// Tensor name -> place, sorted by name.
using Checkpoint = std::map<std::string, CheckpointEntry>;

}  // namespace shardplan::tensor
