// Mistral and Ministral: llama with a sliding window.
#include "model/families/decoder_fields.h"
#include "model/families/family.h"

namespace shardplan::model {

namespace {

/// Ministral 3 scales queries beyond the trained length; up to it the factor is 1.
void note_query_scaling(FieldReader& fields, ModelSpec& model) {
    const ConfigValue* parameters = fields.find({"rope_parameters"});
    if (parameters != nullptr && parameters->find("llama_4_scaling_beta") != nullptr) {
        model.notes.emplace_back(
            "llama_4_scaling_beta is not applied: it changes positions beyond original_max_position_embeddings only");
    }
}

}  // namespace

void read_mistral(FieldReader& fields, ModelSpec& model) {
    SizeDefaults defaults;
    const bool third = model.model_type == "ministral3";
    defaults.kv_heads = 8;
    defaults.max_positions = third ? 262144 : 131072;
    if (third) {
        defaults.head_dim = 128;
    }
    read_sizes(fields, model, defaults);
    read_norm(fields, model, NormKind::rms, third ? 1e-5 : 1e-6, false);
    read_activation(fields, model, "silu");
    set_rope(fields, model, model.attention.head_dim, third ? 1e6 : 10000.0);
    set_windows(fields, model, read_window(fields, third ? 0 : 4096), [](std::int64_t) { return true; });
    note_query_scaling(fields, model);
    use_llama_names(model);
}

}  // namespace shardplan::model
