// Names of a text decoder in the checkpoints of models of text and pictures.
#include <doctest/doctest.h>

#include <algorithm>
#include <regex>
#include <string>

#include "model/model_cases.h"

namespace shardplan::model {
namespace {

Json nested(const char* key, const char* type, const char* outer) {
    Json config;
    config["model_type"] = outer;
    config[key] = small_config("{}");
    config[key]["model_type"] = type;
    return config;
}

bool ignores(const ModelSpec& model, const std::string& name) {
    return std::any_of(model.names.ignored.begin(), model.names.ignored.end(),
                       [&](const std::string& pattern) { return std::regex_match(name, std::regex(pattern)); });
}

}  // namespace

TEST_CASE("a nested decoder has the names of the whole checkpoint, alone it has its own") {
    const ModelSpec whole = read_ok(nested("text_config", "llama", "llava_next"));
    CHECK(whole.names.embedding == "language_model.model.embed_tokens");
    CHECK(whole.names.lm_head == "language_model.lm_head");
    CHECK(whole.names.q == "language_model.model.layers.{}.self_attn.q_proj");
    CHECK(whole.names.qkv.empty());
    CHECK(whole.names.optional_prefix == "language_model.");
    CHECK(read_ok(nested("language_config", "llama", "deepseek_vl_v2")).names.embedding ==
          "language.model.embed_tokens");
    const ModelSpec alone = read_ok(small_config("{}"));
    CHECK(alone.names.embedding == "model.embed_tokens");
    CHECK(alone.names.optional_prefix.empty());
}

TEST_CASE("tensors of other parts are ignored, those of the decoder are not") {
    const ModelSpec whole = read_ok(nested("text_config", "llama", "gemma3"));
    for (const char* name :
         {"vision_tower.vision_model.encoder.layers.3.mlp.fc1.bias", "multi_modal_projector.mm_input_projection_weight",
          "model.vision_tower.patch_conv.weight", "visual.blocks.0.attn.qkv.weight", "audio_tower.conv1.weight",
          "image_newline", "language_model.model.layers.0.self_attn.rotary_emb.inv_freq"}) {
        CAPTURE(name);
        CHECK(ignores(whole, name));
    }
    for (const char* name : {"language_model.model.layers.0.mlp.surprise", "model.layers.9.mlp.up_proj.weight",
                             "language_model.visionary.weight"}) {
        CAPTURE(name);
        CHECK_FALSE(ignores(whole, name));
    }
}

}  // namespace shardplan::model
