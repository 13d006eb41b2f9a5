#include "partition/rules.h"

#include <algorithm>
#include <regex>
#include <utility>

#include <fmt/format.h>

#include "partition/layer_patterns.h"
#include "partition/presets/presets.h"
#include "partition/required_text.h"

namespace shardplan::partition {
namespace {

std::vector<presets::Table> tables_of(RuleSource source) {
    std::vector<presets::Table> result;
    const auto append = [&](std::span<const presets::Table> part) {
        result.insert(result.end(), part.begin(), part.end());
    };
    if (source == RuleSource::seed_0_0_80) {
        append(presets::seed_0_0_80_a_to_z());
    } else if (source == RuleSource::easydel_0_2) {
        append(presets::easydel_0_2_a_to_g());
        append(presets::easydel_0_2_h_to_z());
    }
    return result;
}

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(separator, begin), text.size());
        parts.emplace_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

PartitionSpec read_spec(std::string_view text) {
    PartitionSpec spec;
    if (text.empty()) {
        return spec;
    }
    for (const std::string& word : split(text, ' ')) {
        spec.entries.push_back(word == "-" ? SpecEntry{} : split(word, ','));
    }
    return spec;
}

constexpr auto syntax = std::regex::ECMAScript | std::regex::optimize;

// libstdc++ matches by backtracking unless told otherwise: (a+)+b takes exponential time and deep recursion.
#ifdef __GLIBCXX__
constexpr auto bounded_syntax = syntax | std::regex_constants::__polynomial;
#else
constexpr auto bounded_syntax = syntax;
#endif

/// Throws std::regex_error. The result is for match_continuous: one pass that begins anywhere, where a search would
/// make one pass from every character.
std::regex compile_bounded(const std::string& pattern) {
    const std::regex alone(pattern, bounded_syntax);  // "a)(b" is an error alone, but would not be in brackets
    return std::regex(".*?(?:" + pattern + ")", bounded_syntax);
}

std::string problem_of(const std::string& pattern, std::vector<std::regex>& compiled) {
    if (pattern.empty()) {
        return "is empty";
    }
    if (pattern.size() > RuleTable::longest_pattern) {
        return fmt::format("has {} characters, more than the {} allowed", pattern.size(), RuleTable::longest_pattern);
    }
    try {
        compiled.push_back(compile_bounded(pattern));
    } catch (const std::regex_error& error) {
        if (error.code() == std::regex_constants::error_complexity) {
            return fmt::format("'{}' has a back-reference, which rules may not have", pattern);
        }
        return fmt::format("'{}' is not a regular expression: {}", pattern, error.what());
    }
    return "";
}

}  // namespace

struct RuleTable::Compiled {
    std::vector<std::regex> patterns;
    std::vector<std::string> required;  ///< of each: a name without it is not matched at all, most names of layers
    std::regex_constants::match_flag_type flags = std::regex_constants::match_default;
};

RuleTable::RuleTable() : compiled_(std::make_unique<Compiled>()) {}
RuleTable::~RuleTable() = default;
RuleTable::RuleTable(RuleTable&&) noexcept = default;
RuleTable& RuleTable::operator=(RuleTable&&) noexcept = default;

std::optional<RuleTable> RuleTable::compile(std::vector<ParameterRule> rules, diag::Diagnostics& diagnostics) {
    RuleTable table;
    bool usable = true;
    for (const ParameterRule& rule : rules) {
        const std::string problem = problem_of(rule.pattern, table.compiled_->patterns);
        if (!problem.empty()) {
            diagnostics.report(
                "SP4005", fmt::format("the pattern of a partition rule {}", problem), rule.pointer,
                R"(use an ECMAScript regular expression such as "mlp\\.(gate|up)_proj\\.weight" or ".*")");
            usable = false;
        }
        table.compiled_->required.push_back(problem.empty() ? required_text(rule.pattern) : "");
        table.depends_on_layer_ = table.depends_on_layer_ || may_tell_layers_apart(rule.pattern);
    }
    if (!usable) {
        return std::nullopt;
    }
    table.compiled_->flags = std::regex_constants::match_continuous;
    table.rules_ = std::move(rules);
    return table;
}

std::optional<RuleTable> RuleTable::preset(RuleSource source, std::string_view model_type) {
    const std::vector<presets::Table> tables = tables_of(source);
    const auto found = std::find_if(tables.begin(), tables.end(),
                                    [&](const presets::Table& table) { return table.model_type == model_type; });
    if (found == tables.end()) {
        return std::nullopt;
    }
    RuleTable table;
    for (const presets::Rule& rule : found->rules) {
        table.rules_.push_back({std::string(rule.pattern), read_spec(rule.spec), ""});
        table.compiled_->patterns.emplace_back(table.rules_.back().pattern, syntax);
        table.compiled_->required.push_back(required_text(rule.pattern));
    }
    return table;
}

std::optional<RuleTable::Match> RuleTable::match(std::string_view name) const {
    if (name.size() > longest_name) {
        return std::nullopt;
    }
    for (std::size_t i = 0; i < rules_.size(); ++i) {
        if (name.find(compiled_->required[i]) != std::string_view::npos &&
            std::regex_search(name.begin(), name.end(), compiled_->patterns[i], compiled_->flags)) {
            return Match{static_cast<int>(i), &rules_[i]};
        }
    }
    return std::nullopt;
}

std::vector<std::string> preset_model_types(RuleSource source) {
    std::vector<std::string> result;
    for (const presets::Table& table : tables_of(source)) {
        result.emplace_back(table.model_type);
    }
    std::sort(result.begin(), result.end());
    return result;
}

}  // namespace shardplan::partition
