// MiniCPM (dense): llama with scaled embedding, residual and logits.
#include <cmath>

#include "model/families/decoder_fields.h"
#include "model/families/family.h"

namespace shardplan::model {

void read_minicpm(FieldReader& fields, ModelSpec& model) {
    read_llama(fields, model);
    model.tied_embeddings = fields.flag_or({"tie_word_embeddings"}, true);
    model.embedding_scale = fields.positive_or({"scale_emb"}, 1.0);
    model.residual_scale =
        fields.positive_or({"scale_depth"}, 1.0) / std::sqrt(static_cast<double>(model.layer_count()));
    model.logit_scale = fields.positive_or({"dim_model_base"}, 1.0) / static_cast<double>(model.hidden);
}

}  // namespace shardplan::model
