// Weights from safetensors files. Only the bytes of the block asked for are read (pread), and converted to the wanted
// dtype: f32, bf16, f16 and f64 are understood.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "exec/weights.h"
#include "tensor/checkpoint.h"

namespace shardplan::exec {

class CheckpointWeights final : public WeightSource {
public:
    /// @pre check_checkpoint found nothing. Throws std::runtime_error when a file cannot be opened.
    CheckpointWeights(tensor::Checkpoint checkpoint, const model::ModelSpec& model);
    ~CheckpointWeights() override;

private:
    /// Throws std::runtime_error naming file and tensor when the bytes cannot be read.
    void fill_part(const model::Parameter& parameter, int layer, std::span<const base::Interval> ranges,
                   tensor::View y) const override;

    tensor::Checkpoint checkpoint_;
    std::string optional_prefix_;
    std::map<std::string, int> files_;  ///< path -> descriptor
};

/// Compares the tensors of a checkpoint with those of the model: SP7001 for each that is missing, of another shape or
/// of a dtype that cannot be read, and for each that the model neither has nor ignores. Many of one kind are listed up
/// to a limit, then counted.
std::vector<diag::Diagnostic> check_checkpoint(const model::Graph& graph, const tensor::Checkpoint& checkpoint);

/// The entry of `name`, or of `name` without `optional_prefix`, or with the prefix behind "model.", where that is what
/// the checkpoint holds; end() if none.
tensor::Checkpoint::const_iterator find_tensor(const tensor::Checkpoint& checkpoint, const std::string& name,
                                               const std::string& optional_prefix);

/// A run of elements that lie one behind the other in the stored tensor.
struct Run {
    std::int64_t begin = 0;
    std::int64_t count = 0;
    friend bool operator==(const Run&, const Run&) = default;
};

/// Where the block `ranges` of a part lies in its stored tensor, in row-major order of the block.
std::vector<Run> stored_runs(const model::Parameter& parameter, std::span<const base::Interval> ranges);

}  // namespace shardplan::exec
