// Mixtral: mistral with experts in every layer; the weights of the chosen ones are made to sum to 1.
#include "model/families/decoder_fields.h"
#include "model/families/family.h"
#include "model/families/moe_fields.h"

namespace shardplan::model {

void read_mixtral(FieldReader& fields, ModelSpec& model) {
    SizeDefaults defaults;
    defaults.kv_heads = 8;
    defaults.max_positions = 131072;
    read_sizes(fields, model, defaults);
    read_norm(fields, model, NormKind::rms, 1e-5, false);
    read_activation(fields, model, "silu");
    set_rope(fields, model, model.attention.head_dim, 1e6);
    set_windows(fields, model, read_window(fields, 0), [](std::int64_t) { return true; });
    use_llama_names(model);
    read_experts(fields, model, {8, 2, true});
    model.moe.routing.normalise = true;
    use_mixtral_expert_names(model);
}

}  // namespace shardplan::model
