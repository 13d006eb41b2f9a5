// Orion: llama with LayerNorms.
#include "model/families/decoder_fields.h"
#include "model/families/family.h"

namespace shardplan::model {

void read_orion(FieldReader& fields, ModelSpec& model) {
    read_llama(fields, model);
    read_norm(fields, model, NormKind::layer, 1e-5, true);
}

}  // namespace shardplan::model
