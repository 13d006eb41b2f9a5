// Parameter rules: ordered (regular expression, PartitionSpec) pairs, the first match (search, not full match) wins,
// as EasyDeL's get_partition_rules / match_partition_rules. Presets are the complete tables of two releases, dead rules
// and catch-alls included (semantics 1a.5, 1a.6), where a release has variants those of its defaults. Patterns are
// ECMAScript (std::regex) without back-references, so that no pattern takes more time than its length times that of the
// name.
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
    static constexpr std::size_t longest_pattern = 512;
    static constexpr std::size_t longest_name = 1024;

    /// Errors in a pattern, or one longer than longest_pattern or empty: SP4005 at its pointer, for every such rule.
    static std::optional<RuleTable> compile(std::vector<ParameterRule> rules, diag::Diagnostics& diagnostics);
    /// The preset table of a Hugging Face model type; nullopt when the release has none (the caller reports it).
    static std::optional<RuleTable> preset(RuleSource source, std::string_view model_type);

    struct Match {
        int index = 0;  ///< position of the rule in its table
        const ParameterRule* rule = nullptr;
    };
    /// nullopt also for names longer than longest_name.
    std::optional<Match> match(std::string_view name) const;
    const std::vector<ParameterRule>& rules() const { return rules_; }
    /// True when a pattern may tell layers apart: it has a number that stands alone ("layers.3", not "fc1" or "4h"), a
    /// class of digits, a counted repetition or a wildcard for one character next to a separator. False for presets.
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

/// "model.layers.3.self_attn.q_proj.weight" -> "model/layers/3/self_attn/q_proj/kernel" for `model_type`, in the names
/// by which the table of that release calls its modules: every parameter reaches the rule that was written for it, also
/// where upstream's own modules were renamed later and the rule was dead (0.0.80: gpt_neox' w_qkv, wo, wte; gptj's
/// model/wte). A parameter without a rule of its own stays with the catch-all. The weights of norms are called kernel
/// or scale as the table has it. Kernels of a linear are (in, out) in Flax; experts are stacked in 0.2: no index.
/// derived, custom and unknown model types: the dots become slashes, the last component the leaf.
std::string flax_path(RuleSource source, std::string_view model_type, std::string_view checkpoint_name, FlaxLeaf leaf);

}  // namespace shardplan::partition
