// Granite: llama with multipliers on embedding, attention, residual and logits.
#include "model/families/decoder_fields.h"
#include "model/families/family.h"

namespace shardplan::model {

void read_granite(FieldReader& fields, ModelSpec& model) {
    read_llama(fields, model);
    model.embedding_scale = fields.positive_or({"embedding_multiplier"}, 1.0);
    model.residual_scale = fields.positive_or({"residual_multiplier"}, 1.0);
    model.attention.scale = fields.positive_or({"attention_multiplier"}, 1.0);
    model.logit_scale = 1.0 / fields.positive_or({"logits_scaling"}, 1.0);
}

}  // namespace shardplan::model
