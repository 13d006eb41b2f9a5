// Baichuan 1 and 2: 7B with rope, 13B with ALiBi; [q | k | v] in one tensor.
#include "model/alibi.h"
#include "model/families/decoder_fields.h"
#include "model/families/family.h"

namespace shardplan::model {

void read_baichuan(FieldReader& fields, ModelSpec& model) {
    SizeDefaults defaults;
    defaults.max_positions = 4096;
    read_sizes(fields, model, defaults);
    read_norm(fields, model, NormKind::rms, 1e-6, false);
    read_activation(fields, model, "silu");
    AttentionSpec& a = model.attention;
    a.storage = QkvStorage::concatenated;
    // The 13B config, whose code has ALiBi, names its length model_max_length only.
    a.alibi = fields.find({"max_position_embeddings"}) == nullptr;
    if (a.alibi) {
        a.alibi_slopes = alibi_slopes(a.heads);
    } else {
        set_rope(fields, model, a.head_dim);
    }
    use_llama_names(model);
    model.names.qkv = "model.layers.{}.self_attn.W_pack";
    if (model.vocab == 125696) {
        model.notes.emplace_back("the head of Baichuan 2 norms the rows of its weight: norm them in the checkpoint");
    }
}

}  // namespace shardplan::model
