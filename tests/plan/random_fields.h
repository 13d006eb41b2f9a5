// A PartitionAxis at random, in both dialects, as members of a JSON object. Every field is drawn; fields that meet in
// one tensor draw from the axes the others leave, so that most are good.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "comm/tensors.h"

namespace shardplan::test {

class Draw : public Random {
public:
    using Random::Random;

    bool one_in(std::int64_t n) { return below(n) == 0; }
    template <typename T>
    T pick(const std::vector<T>& values) {
        return values[static_cast<std::size_t>(below(std::ssize(values)))];
    }
};

/// Zero, one or two of the axes, hardly ever one of `taken`; what was drawn is added to it.
inline std::vector<std::string> draw_entry(Draw& random, const std::vector<std::string>& axes,
                                           std::vector<std::string>& taken) {
    std::vector<std::string> entry;
    const auto wanted = random.pick(std::vector<int>{0, 0, 1, 1, 1, 2});
    for (int i = 0; i < wanted; ++i) {
        const std::string axis = random.pick(axes);
        const bool free = std::find(taken.begin(), taken.end(), axis) == taken.end();
        const bool repeated = std::find(entry.begin(), entry.end(), axis) != entry.end();
        if (!repeated && (free || random.one_in(60))) {
            entry.push_back(axis);
        }
    }
    taken.insert(taken.end(), entry.begin(), entry.end());
    return entry;
}

inline std::string entry_json(const std::vector<std::string>& entry) {
    if (entry.empty()) {
        return "null";
    }
    return entry.size() == 1 ? fmt::format("\"{}\"", entry.front())
                             : fmt::format("[\"{}\"]", fmt::join(entry, "\", \""));
}

class RandomFields {
public:
    RandomFields(Draw& random, const std::vector<std::string>& axes) : random_(random), axes_(axes) {}

    /// The 13 fields and the extensions.
    std::string seed() {
        if (random_.one_in(8)) {  // the defaults, on whatever axes the mesh has
            return "";
        }
        Names batch;
        Names heads;
        draw_common(batch, heads);
        Names generation = batch;
        set("generation_head_axis", generation);
        if (random_.one_in(3)) {
            set("generation_query_sequence_axis", generation);
        }
        if (random_.one_in(6)) {
            set("attention_dim_axis", heads);
        }
        if (random_.one_in(3)) {
            Names kv = batch;
            set("kv_head_axis", kv);
        }
        draw_weights({"mlp_intermediate_axis", "vocab_axis", "weight_storage_axis", "expert_axis"});
        return text_;
    }

    /// Those of eformer: the five base names, and fields of their own for key/value heads and every decode field.
    std::string current() {
        if (random_.one_in(8)) {
            return "";
        }
        if (random_.one_in(3)) {
            draw_base_names();
        }
        if (!text_.empty() && random_.one_in(2)) {  // all other fields follow from the base names
            return text_;
        }
        Names batch;
        Names heads;
        const Names head = draw_common(batch, heads);
        if (random_.one_in(3)) {
            Names kv = batch;
            set("kv_head_axis", kv);
        } else {
            give("kv_head_axis", head);  // not linked to head_axis: the default is tp
        }
        if (random_.one_in(6)) {
            set("attention_dim_axis", heads);
        }
        if (random_.one_in(6)) {
            Names kv = heads;
            set("attention_kv_dim_axis", kv);
        }
        draw_decode(batch);
        draw_weights({"mlp_intermediate_axis", "vocab_axis", "weight_storage_axis", "expert_axis", "expert_gate_axis"});
        return text_;
    }

private:
    using Names = std::vector<std::string>;

    void give(const std::string& field, const Names& entry) {
        text_ += fmt::format(R"({}"{}": {})", text_.empty() ? "" : ", ", field, entry_json(entry));
    }
    Names set(const std::string& field, Names& taken) {
        const Names entry = draw_entry(random_, axes_, taken);
        give(field, entry);
        return entry;
    }

    /// What both dialects have; returns the axes of the heads.
    Names draw_common(Names& batch, Names& heads) {
        Names shared;  // an axis that cuts the sequence of queries and keys and nothing else of attention
        if (random_.one_in(3)) {
            shared.push_back(random_.pick(axes_));
        }
        batch = shared;
        set("batch_axis", batch);
        Names hidden = batch;
        if (shared.empty() || random_.one_in(3)) {
            set("sequence_axis", hidden);
        } else {
            give("sequence_axis", shared);
        }
        set("hidden_state_axis", hidden);
        heads = batch;
        Names head = set("head_axis", heads);
        if (shared.empty()) {
            Names query = heads;
            set("query_sequence_axis", query);
            Names key = heads;
            set("key_sequence_axis", key);
        } else {
            give("query_sequence_axis", shared);
            give("key_sequence_axis", shared);
        }
        return head;
    }

    /// Each of the five names an axis of its own.
    void draw_base_names() {
        Names left = axes_;
        for (const char* field : {"tensor_parallel_axis", "sequence_parallel_axis", "data_parallel_axis",
                                  "fully_sharded_data_parallel_axis", "expert_parallel_axis"}) {
            if (!left.empty() && random_.one_in(2)) {
                const std::string axis = random_.pick(left);
                std::erase(left, axis);
                give(field, {axis});
            }
        }
    }

    void draw_decode(const Names& batch) {
        Names taken = batch;
        if (random_.one_in(4)) {
            taken.clear();
            set("decode_batch_axis", taken);
        }
        if (random_.one_in(2)) {
            give("decode_kv_head_axis", set("decode_head_axis", taken));
        }
        for (const char* field : {"decode_query_sequence_axis", "decode_key_sequence_axis", "decode_attention_dim_axis",
                                  "decode_attention_kv_dim_axis"}) {
            Names own = taken;
            if (random_.one_in(4)) {
                set(field, own);
            }
        }
    }

    void draw_weights(const Names& fields) {
        for (const std::string& field : fields) {
            Names none;
            if (random_.one_in(2)) {
                set(field, none);
            }
        }
    }

    Draw& random_;
    const Names& axes_;
    std::string text_;
};

}  // namespace shardplan::test
