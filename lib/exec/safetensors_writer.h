// Writes safetensors files: eight bytes length, a JSON header, raw row-major little-endian data. A file appears under
// its name only when it is complete (written beside it, then renamed). Failures throw std::runtime_error with the path.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "exec/logits.h"
#include "exec/weights.h"
#include "plan/plan.h"

namespace shardplan::exec {

struct TensorToWrite {
    std::string name;
    tensor::DType dtype = tensor::DType::f32;
    tensor::Shape shape;
    std::function<std::vector<std::byte>()> data;  ///< called once, in order; as many bytes as shape and dtype say
};

void write_safetensors(const std::string& path, const std::vector<TensorToWrite>& tensors);

/// All parameters of the model in `dtype` (f32 or bf16) under their checkpoint names as directory/model.safetensors:
/// parts of fused tensors put together, a tied head left out. One tensor at a time is in memory. The directory is made.
void save_weights(const std::string& directory, const model::Graph& graph, tensor::DType dtype,
                  const WeightSource& source);

/// The f32 tensor "logits" [b, s, v].
void write_logits(const std::string& path, const FloatTensor& logits);

}  // namespace shardplan::exec
