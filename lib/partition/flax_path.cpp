#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <span>

#include <fmt/format.h>

#include "partition/rules.h"

namespace shardplan::partition {
namespace {

struct Rename {
    std::string_view model_type;
    std::string_view from;  ///< components with their slashes
    std::string_view to;
};

// HF's names of modules -> those in the patterns of the release, where they differ.
constexpr Rename seed_renames[] = {
    {"gpt2", "/lm_head/", "/transformer/lm_head/"},
    {"gptj", "/transformer/", "/model/"},
    {"gpt_neox", "/gpt_neox/", "/transformer/"},
    {"gpt_neox", "/embed_in/", "/wte/"},
    {"gpt_neox", "/attention/query_key_value/", "/attention/w_qkv/"},
    {"gpt_neox", "/attention/dense/", "/attention/wo/"},
    {"gpt_neox", "/embed_out/", "/lm_head/"},
    {"internlm2", "/tok_embeddings/", "/embed_tokens/"},
    {"internlm2", "/attention/wqkv/", "/self_attn/q_proj/"},
    {"internlm2", "/attention/wo/", "/self_attn/o_proj/"},
    {"internlm2", "/feed_forward/w1/", "/mlp/gate_proj/"},
    {"internlm2", "/feed_forward/w3/", "/mlp/up_proj/"},
    {"internlm2", "/feed_forward/w2/", "/mlp/down_proj/"},
    {"internlm2", "/attention_norm/", "/input_layernorm/"},
    {"internlm2", "/ffn_norm/", "/post_attention_layernorm/"},
    {"internlm2", "/output/", "/lm_head/"},
};

constexpr Rename easydel_renames[] = {
    {"gpt_neox", "/embed_out/", "/lm_head/"},
};

/// Model types whose tables call the weight of a norm scale (flax' LayerNorm); kernel in all others.
constexpr std::string_view seed_scales[] = {"falcon", "gpt2", "gptj", "gpt_neox", "mpt", "phi"};
constexpr std::string_view easydel_scales[] = {"falcon", "glm",  "glm4", "gpt2", "gptj",    "gpt_neox",
                                               "mpt",    "olmo", "opt",  "phi",  "stablelm"};

constexpr std::array<std::string_view, 4> heads = {"lm_head", "embed_out", "output", "score"};

std::string_view root_of(std::string_view model_type) {
    for (const std::string_view type : {"gpt2", "gptj", "falcon", "mpt", "exaone", "dbrx"}) {
        if (type == model_type) {
            return "transformer";
        }
    }
    return model_type == "gpt_neox" ? "gpt_neox" : "model";
}

/// "/h/0/ln_1/" -> "/transformer/h/0/ln_1/": some checkpoints leave the prefix out.
void add_root(std::string& path, std::string_view model_type) {
    const std::string root = fmt::format("/{}/", root_of(model_type));
    const std::string first = path.substr(1, path.find('/', 1) - 1);
    if (path.find(root) == path.npos && std::find(heads.begin(), heads.end(), first) == heads.end()) {
        path.insert(0, root.substr(0, root.size() - 1));
    }
}

void drop_expert_index(std::string& path) {
    constexpr std::string_view experts = "/experts/";
    const std::size_t begin = path.find(experts);
    if (begin == path.npos) {
        return;
    }
    const std::size_t index = begin + experts.size();
    std::size_t end = index;
    while (end < path.size() && std::isdigit(static_cast<unsigned char>(path[end])) != 0) {
        ++end;
    }
    if (end > index && end < path.size() && path[end] == '/') {
        path.erase(index, end + 1 - index);
    }
}

std::string_view name_of(FlaxLeaf leaf) {
    switch (leaf) {
        case FlaxLeaf::kernel: return "kernel";
        case FlaxLeaf::embedding: return "embedding";
        case FlaxLeaf::scale: return "scale";
        case FlaxLeaf::bias: break;
    }
    return "bias";
}

template <class Names>
bool contains(const Names& names, std::string_view name) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool has_preset(RuleSource source, std::string_view model_type) {
    return contains(preset_model_types(source), model_type);
}

}  // namespace

std::string flax_path(RuleSource source, std::string_view model_type, std::string_view checkpoint_name, FlaxLeaf leaf) {
    std::string path = fmt::format("/{}", checkpoint_name);
    std::replace(path.begin(), path.end(), '.', '/');
    const std::size_t last = path.rfind('/');
    const std::string_view suffix = std::string_view(path).substr(last + 1);
    if (suffix == "weight" || suffix == "bias") {
        path.resize(last);
    }
    path += '/';
    std::string_view leaf_name = name_of(leaf);
    if (has_preset(source, model_type)) {
        const bool seed = source == RuleSource::seed_0_0_80;
        add_root(path, model_type);
        for (const Rename& rename : seed ? std::span<const Rename>(seed_renames) : easydel_renames) {
            const std::size_t at = rename.model_type == model_type ? path.find(rename.from) : path.npos;
            if (at != path.npos) {
                path.replace(at, rename.from.size(), rename.to);
            }
        }
        if (!seed) {
            drop_expert_index(path);
        }
        const bool scales = seed ? contains(seed_scales, model_type) : contains(easydel_scales, model_type);
        if (leaf == FlaxLeaf::scale && !scales) {
            leaf_name = "kernel";
        }
    }
    return path.substr(1).append(leaf_name);
}

}  // namespace shardplan::partition
