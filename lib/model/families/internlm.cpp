// InternLM 1 and openPangu: llama with biases in attention.
#include "model/families/decoder_fields.h"
#include "model/families/family.h"

namespace shardplan::model {

void read_internlm(FieldReader& fields, ModelSpec& model) {
    read_llama(fields, model);
    set_attention_bias(model, fields.flag_or({"bias"}, true));
}

}  // namespace shardplan::model
