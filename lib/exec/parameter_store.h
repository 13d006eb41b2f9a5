// The parameters of one rank: its shards, loaded from a source of weights. A weight never exists twice: those that only
// linears use, as they are stored, are kept prepared for the kernels; all others (gathered, looked up, added) are kept
// plain, and so are those that one step multiplies with beside a plain one.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "exec/buffer.h"
#include "exec/schedule.h"
#include "exec/weights.h"
#include "kernels/kernels.h"
#include "plan/pipeline.h"
#include "plan/weight_format.h"

namespace shardplan::exec {

class ParameterStore {
public:
    /// Counts StoredTensor::bytes_per_device of each instance as parameters; what preparing adds, and the copies while
    /// loading, as scratch. plan must outlive it. Weights that the plan has in int8 are quantised here, each with the
    /// scales of this rank's part of it.
    /// Only what the rank's stage holds is loaded.
    ParameterStore(const plan::Plan& plan, std::int64_t rank, const kernels::Kernels& kernels,
                   const WeightSource& source, Allocator& allocator);

    /// The plain shard; a view without data where it is kept prepared.
    tensor::ConstView plain(int stored, int layer) const;
    /// The prepared matrices of the parts of a linear; empty where they are kept plain.
    std::vector<const kernels::Weight*> prepared(const plan::BlockPlan& block, const LinearStep& linear,
                                                 int layer) const;

private:
    using Group = plan::WeightGroup;
    struct Prepared {
        std::unique_ptr<kernels::Weight> weight;
        Reservation logical;
        Reservation padding;
    };

    std::vector<Group> groups_by_size() const;
    void load_plain(int stored, std::int64_t rank, const WeightSource& source, Allocator& allocator);
    void load_group(const Group& group, std::int64_t rank, const kernels::Kernels& kernels, const WeightSource& source,
                    Allocator& allocator);
    Prepared load_prepared(int stored, int layer, bool transposed, std::int64_t rank, const kernels::Kernels& kernels,
                           const WeightSource& source, Allocator& allocator) const;

    const plan::Plan& plan_;
    plan::StageTensors of_stage_;
    std::map<Group, bool> transposed_;        ///< groups that are kept prepared -> weights are [in, out]
    std::vector<std::vector<Buffer>> plain_;  ///< per stored tensor, per instance; empty where prepared
    std::map<Group, std::vector<std::vector<Prepared>>> prepared_;  ///< per instance, per part
};

}  // namespace shardplan::exec
