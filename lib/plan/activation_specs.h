// Which layout PartitionAxis asks of each activation, by its role (semantics 1a.4, 1a.9).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/graph.h"
#include "plan/placement.h"
#include "plan/plan.h"

namespace shardplan::plan {

/// What is asked of a tensor's layout.
struct Ask {
    enum class Strength : std::uint8_t {
        none,     ///< the lowering is free
        hint,     ///< only weighed: what the value will become
        enforce,  ///< the value is resharded to it
    };
    Strength strength = Strength::none;
    partition::Layout layout;
    partition::PartitionSpec spec;  ///< for people
    std::string reason;
};

class ActivationSpecs {
public:
    /// `token_parallel`: axes over which the provider cuts the residual stream by tokens (inference), as names.
    ActivationSpecs(const Job& job, const RefinedMesh& mesh, const partition::SpecEntry& token_parallel,
                    Placer& placer);

    /// The ask for a tensor of an activation, input or cache role. Roles that are enforced have one shape in the whole
    /// graph, but for the width of keys and values (latent attention).
    const Ask& ask(model::TensorRole role, const tensor::Shape& shape);

    /// The refined axes of every ask made so far, hints included.
    mesh::AxisSet axes_used() const;

    /// Every ask made so far, for the plan: name, spec, reason.
    std::vector<ActivationSpec> described() const;

private:
    std::vector<DimRequest> requests(model::TensorRole role, const tensor::Shape& shape) const;
    std::vector<DimRequest> cache_requests(model::TensorRole role, const tensor::Shape& shape) const;
    DimRequest request(partition::Semantic semantic, const char* dimension, std::int64_t units) const;
    const char* batch_name() const { return job_.workload.micro_batches > 1 ? "micro-batch size" : "batch_size"; }
    const char* length_name() const {
        return job_.workload.mode == model::Mode::insert ? "insert_length"
               : job_.workload.chunked()                 ? "chunk_length"
                                                         : "sequence_length";
    }
    /// Then tokens can be told apart by their sequence only.
    bool one_token_each() const { return job_.workload.continues() && job_.workload.query_length() == 1; }
    DimRequest sequence(partition::Semantic semantic, std::int64_t units) const;
    void add_token_parallel(std::vector<DimRequest>& dims) const;
    Ask make(model::TensorRole role, const tensor::Shape& shape);
    partition::Layout lenient(std::vector<DimRequest> dims) const;
    partition::Layout to_layout(const partition::PartitionSpec& spec, const std::vector<DimRequest>& dims) const;

    const Job& job_;
    const RefinedMesh& mesh_;
    partition::SpecEntry token_parallel_;
    Placer& placer_;
    bool generation_;
    partition::Phase phase_;
    std::map<std::pair<model::TensorRole, tensor::Shape>, Ask> asks_;
};

}  // namespace shardplan::plan
