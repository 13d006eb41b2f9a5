// Parameter rules: ordered (regular expression, PartitionSpec) pairs, the first match (search, not full match) wins,
// as EasyDeL's get_partition_rules / match_partition_rules. Presets are the complete tables of two releases.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diag/diagnostic.h"
#include "partition/partition_spec.h"

namespace shardplan::partition {

struct ParameterRule {
    std::string pattern;
    PartitionSpec spec;
    std::string pointer;  ///< JSON pointer of the rule in the job; empty for presets
};

enum class RuleSource : std::uint8_t {
    derived,      ///< from the role of each weight (column, row, vocabulary, replicated)
    seed_0_0_80,  ///< EasyDeL tag 0.0.80
    easydel_0_2,  ///< EasyDeL v0.2.0.2
    custom,       ///< the job's list; patterns search the checkpoint name, specs follow the stored dimensions
};

/// Compiled rules.
class RuleTable {
public:
    /// Errors in a pattern: SP4005 at its pointer.
    static std::optional<RuleTable> compile(std::vector<ParameterRule> rules, diag::Diagnostics& diagnostics);
    /// The preset table of a Hugging Face model type; nullopt when the release has none (the caller reports it).
    static std::optional<RuleTable> preset(RuleSource source, std::string_view model_type);

    struct Match {
        int index = 0;  ///< position of the rule in its table
        const ParameterRule* rule = nullptr;
    };
    std::optional<Match> match(std::string_view name) const;
    const std::vector<ParameterRule>& rules() const { return rules_; }
    /// True when a pattern can tell layers apart (it has a digit or a digit class).
    bool depends_on_layer() const { return depends_on_layer_; }

    RuleTable();
    ~RuleTable();
    RuleTable(RuleTable&&) noexcept;
    RuleTable& operator=(RuleTable&&) noexcept;

private:
    struct Compiled;
    std::vector<ParameterRule> rules_;
    std::unique_ptr<Compiled> compiled_;
    bool depends_on_layer_ = false;
};

/// The model types that a preset knows.
std::vector<std::string> preset_model_types(RuleSource source);

/// What a parameter is called in Flax: decides the last component of its path.
enum class FlaxLeaf : std::uint8_t { kernel, embedding, scale, bias };

/// "model.layers.3.self_attn.q_proj.weight" -> "model/layers/3/self_attn/q_proj/kernel" for `model_type`, in the module
/// names that release uses for it. Kernels of a linear are (in, out) in Flax.
std::string flax_path(RuleSource source, std::string_view model_type, std::string_view checkpoint_name, FlaxLeaf leaf);

}  // namespace shardplan::partition
