// Gemma: the norm weight w means 1 + w, embeddings are scaled by sqrt(hidden), the head is tied.
#include <cmath>

#include "model/families/decoder_fields.h"
#include "model/families/family.h"

namespace shardplan::model {

void read_gemma_fields(FieldReader& fields, ModelSpec& model, const SizeDefaults& defaults) {
    read_sizes(fields, model, defaults);
    read_norm(fields, model, NormKind::rms, 1e-6, false);
    model.norm.weight_offset = 1.0;
    model.embedding_scale = std::sqrt(static_cast<double>(model.hidden));
    // hidden_act of early files is wrong ("gelu") and ignored, as transformers does.
    model.mlp.activation = known_activation(fields, {"hidden_activation"}, "gelu_pytorch_tanh");
    set_attention_bias(model, fields.flag_or({"attention_bias"}, false));
    use_llama_names(model);
}

void read_gemma(FieldReader& fields, ModelSpec& model) {
    SizeDefaults defaults;
    defaults.vocab = 256000;
    defaults.kv_heads = 16;
    defaults.head_dim = 256;
    defaults.max_positions = 8192;
    defaults.tied = true;
    read_gemma_fields(fields, model, defaults);
    set_rope(fields, model, model.attention.head_dim);
}

}  // namespace shardplan::model
