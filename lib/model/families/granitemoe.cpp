// Granite MoE: granite with experts in stacked tensors; the weights are a softmax over the chosen logits.
#include "model/families/decoder_fields.h"
#include "model/families/family.h"
#include "model/families/moe_fields.h"

namespace shardplan::model {

void read_granitemoe(FieldReader& fields, ModelSpec& model) {
    read_granite(fields, model);
    read_experts(fields, model, {8, 2, false});
    model.moe.routing.normalise = false;
    model.moe.routing.score = RouterScore::top_softmax;
    model.moe.storage = ExpertStorage::rows;
    TensorNames& n = model.names;
    n.router = "model.layers.{}.block_sparse_moe.router.layer";
    n.expert_gate_up = "model.layers.{}.block_sparse_moe.input_linear";
    n.expert_down = "model.layers.{}.block_sparse_moe.output_linear";
    if (model.model_type == "granitemoeshared") {
        model.moe.shared_intermediate = fields.size_or({"shared_intermediate_size"}, 1024);
        model.moe.shared_fused = true;
        n.shared_gate_up = "model.layers.{}.shared_mlp.input_linear";
        n.shared_down = "model.layers.{}.shared_mlp.output_linear";
    }
}

}  // namespace shardplan::model
