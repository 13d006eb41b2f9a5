#include "model/families/position_layers.h"

#include <fmt/format.h>

#include <cstddef>

namespace shardplan::model {

void read_position_layers(FieldReader& fields, ModelSpec& model) {
    const std::int64_t interval = fields.size_or({"no_rope_layer_interval"}, 4);
    const ConfigValue* value = fields.find({"no_rope_layers"});
    const ConfigValue::Array* list = value != nullptr ? value->array() : nullptr;
    const bool derived = list != nullptr && list->empty();
    if (value != nullptr && !derived && (list == nullptr || list->size() != model.layers.size())) {
        fields.report("SP2003", {"no_rope_layers"},
                      list == nullptr ? fmt::format("no_rope_layers must be a list, not {}", describe(*value))
                                      : fmt::format("no_rope_layers has {} values, the model has {} layers",
                                                    list->size(), model.layers.size()),
                      fmt::format("give 0 or 1 for each of the {} layers", model.layers.size()));
        return;
    }
    const bool stated = fields.find({"no_rope_layer_interval"}) != nullptr && (list == nullptr || derived);
    if (fields.ok() && stated && model.layer_count() % interval != 0) {
        model.notes.push_back(
            fmt::format("no_rope_layer_interval {} does not divide the {} layers: Megatron-Core refuses it as a number "
                        "and takes the same layers as a list (no_rope_layers)",
                        interval, model.layer_count()));
    }
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
        const bool listed = list != nullptr && !derived;
        const std::int64_t* flag = listed ? (*list)[i].integer() : nullptr;
        if (listed && flag == nullptr) {
            fields.wrong_type((*list)[i], "0 or 1");
            return;
        }
        if (listed && *flag != 0 && *flag != 1) {
            fields.report("SP1006", {"no_rope_layers"},
                          fmt::format("no_rope_layers holds {} for layer {}, it must be 0 or 1", *flag, i),
                          "1: the layer has positions, 0: it has none");
            return;
        }
        model.layers[i].rope = listed ? *flag != 0 : (static_cast<std::int64_t>(i) + 1) % interval != 0;
    }
}

}  // namespace shardplan::model
