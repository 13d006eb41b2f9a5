// MiniCPM, dense and with experts: llama with scaled embedding, residual and logits. The experts are named w1, w2 and
// w3 under mlp, and the weights of the chosen ones sum to 1.
#include <cmath>

#include "model/families/decoder_fields.h"
#include "model/families/family.h"
#include "model/families/moe_fields.h"

namespace shardplan::model {

void read_minicpm(FieldReader& fields, ModelSpec& model) {
    read_llama(fields, model);
    model.tied_embeddings = fields.flag_or({"tie_word_embeddings"}, true);
    model.embedding_scale = fields.positive_or({"scale_emb"}, 1.0);
    model.residual_scale =
        fields.positive_or({"scale_depth"}, 1.0) / std::sqrt(static_cast<double>(model.layer_count()));
    model.logit_scale = fields.positive_or({"dim_model_base"}, 1.0) / static_cast<double>(model.hidden);
    const ConfigValue* experts = fields.find({"num_experts"});
    if (experts == nullptr || (experts->integer() != nullptr && *experts->integer() == 0)) {
        return;
    }
    read_experts(fields, model, {8, 2, true});
    TensorNames& n = model.names;
    n.router = "model.layers.{}.mlp.gate";
    n.expert_gate = "model.layers.{}.mlp.experts.{expert}.w1";
    n.expert_up = "model.layers.{}.mlp.experts.{expert}.w3";
    n.expert_down = "model.layers.{}.mlp.experts.{expert}.w2";
}

}  // namespace shardplan::model
