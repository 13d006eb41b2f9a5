// Pipeline parallelism: along one mesh axis the layers are dealt out to stages instead of any tensor being cut. The
// plan stays one program of blocks; a device runs the uses of its own stage and hands the hidden state, in the layout
// all layers share, to the device of the same other coordinates in the next stage. Micro-batches go through the stages
// one behind the other. Embedding and head belong to the first and the last stage; a tied table is held by both.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "diag/diagnostic.h"
#include "plan/plan.h"

namespace shardplan::plan {

/// The field of partition_axis, or the rule, of the job that names the axis; nullopt when none does.
std::optional<std::string> field_naming(const Job& job, const std::string& axis);

/// The axis whose coordinates are the stages: Pipeline::axis when the job has a pipeline, else "pp" when the mesh has
/// it and no field or rule of the job names it. nullopt: no pipeline.
std::optional<std::string> pipeline_axis(const Job& job);

/// Layers of each stage. Given ones are taken; else all get as many, the remainder one each from the first stage on
/// (or the last), embedding and loss counting as a layer where asked (Megatron-Core
/// account_for_embedding_in_pipeline_split). SP3005 when a stage has none, or given ones do not add up.
std::optional<std::vector<std::int64_t>> stage_layers(const Job& job, std::int64_t stages,
                                                      diag::Diagnostics& diagnostics);

/// Fills in plan.stages and plan.pipeline_axis, with the memory of parameters and caches: one stage of everything
/// without a pipeline. @pre graph and stored are filled in
void deal_out_layers(Plan& plan, diag::Diagnostics& diagnostics);

/// The stages' memory of parameters and caches anew, when what they occupy has changed.
void count_stored_memory(Plan& plan);

/// Replicas of tensors that several stages hold: a tied embedding is on the devices of the first and the last.
void count_stage_copies(Plan& plan);

/// Adds what follows from the lowered blocks: activations, flops, what is handed on. @pre scheduled (plan/memory.h)
void finish_stages(Plan& plan);

/// Which parameters and caches the devices of a stage hold: pairs of index into Plan::stored and layer (-1 outside).
class StageTensors {
public:
    StageTensors(const Plan& plan, const Stage& stage);
    bool holds(int stored, int layer) const { return held_.contains({stored, layer}); }
    const std::set<std::pair<int, int>>& held() const { return held_; }

private:
    std::set<std::pair<int, int>> held_;
};

/// Index into plan.stages of a rank.
std::size_t stage_of(const Plan& plan, std::int64_t rank);

/// Devices that run a stage.
std::int64_t stage_devices(const Plan& plan);

}  // namespace shardplan::plan
