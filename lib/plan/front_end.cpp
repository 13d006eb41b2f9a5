#include "plan/front_end.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "plan/checks/checks.h"
#include "plan/checks/size_hints.h"
#include "plan/kv_heads.h"
#include "plan/layer_rules.h"
#include "plan/parameter_specs.h"
#include "plan/pipeline.h"
#include "plan/weight_format.h"

namespace shardplan::plan {

using partition::Phase;
using partition::Semantic;
using partition::SpecEntry;

backend::ProviderCompat provider_compat(const Job& job) {
    return job.options.compat == partition::Compat::seed ? backend::ProviderCompat::seed
                                                         : backend::ProviderCompat::current;
}

FrontEnd::FrontEnd(const Job& job, diag::Diagnostics& diagnostics)
    : diagnostics_(diagnostics), errors_before_(diagnostics.error_count()), placer_(plan_.job, diagnostics) {
    plan_.job = job;
}

bool FrontEnd::run() {
    placer_.set_pipeline_axis(pipeline_axis(plan_.job));
    if (const auto& pipeline = plan_.job.pipeline; pipeline && !plan_.job.mesh.find(pipeline->axis)) {
        diagnostics_.report("SP4002",
                            fmt::format("pipeline.axis names axis '{}', which the mesh does not have", pipeline->axis),
                            "/pipeline/axis", "add the axis to the mesh, or leave pipeline out");
    }
    split_batch();
    round_cache_length();
    pad_vocabulary();
    model::check_workload(plan_.job.model, plan_.job.workload, diagnostics_);
    plan_.mesh = RefinedMesh(plan_.job.mesh, kv_head_splits(plan_.job, placer_, diagnostics_));
    choose_provider();
    build_graph();
    asks_ = std::make_unique<ActivationSpecs>(plan_.job, plan_.mesh, token_parallel_, placer_);
    place();
    placer_.check_names();
    if (plan_.job.int8_weights) {
        choose_weight_formats(plan_);
        check_kept_experts(plan_, diagnostics_);
    }
    deal_out_layers(plan_, diagnostics_);
    count_stage_copies(plan_);
    check();
    plan_.notes.insert(plan_.notes.end(), placer_.notes().begin(), placer_.notes().end());
    plan_.notes.insert(plan_.notes.end(), plan_.job.model.notes.begin(), plan_.job.model.notes.end());
    return diagnostics_.error_count() == errors_before_;
}

/// Decode without a stated cache length: what the key axes need to divide it evenly.
void FrontEnd::round_cache_length() {
    model::Workload& workload = plan_.job.workload;
    if (!workload.reads_cache() || workload.cache_length > 0) {
        return;
    }
    const auto entry = plan_.job.partition_axis.resolve(Semantic::kv_length, Phase::train);
    const std::int64_t parts = placer_.size_of(placer_.existing_axes(entry, "kv_cache"));
    workload.cache_length = base::checked_mul(base::ceil_div(workload.cache_slots(), parts), parts);
    placer_.let_cache_grow();
    plan_.notes.push_back(fmt::format("cache_length not given: {} positions", workload.cache_length));
}

/// The plan is for one micro-batch.
void FrontEnd::split_batch() {
    model::Workload& workload = plan_.job.workload;
    if (workload.micro_batches == 1) {
        return;
    }
    std::string problem;
    std::string hint;
    if (workload.micro_batches < 1 || workload.batch_size % workload.micro_batches != 0) {
        problem = fmt::format("batch_size {} is not a multiple of micro_batches {}", workload.batch_size,
                              workload.micro_batches);
        hint = fmt::format("numbers that work: {}", divisors_text(workload.batch_size));
    } else if (workload.reads_cache() || workload.cache_length > 0) {
        problem = "micro-batches are for prefill without a cache: a cache holds the whole batch";
        hint = "leave micro_batches out, or cache_length and chunk_length";
    } else if (!pipeline_axis(plan_.job)) {
        const auto field = plan_.job.pipeline ? std::nullopt : field_naming(plan_.job, "pp");
        problem = fmt::format("micro-batches need a pipeline, and {}",
                              field ? fmt::format("axis 'pp' is none, as {} names it", *field) : "no mesh axis is one");
        hint = field ? fmt::format("remove 'pp' from {}", *field)
                     : "name an axis of the mesh \"pp\", or give pipeline.axis";
    }
    if (!problem.empty()) {
        diagnostics_.report("SP6002", problem, "/workload/micro_batches", hint);
        return;
    }
    workload.batch_size /= workload.micro_batches;
}

/// What cuts the vocabulary only the placement knows, of whatever rules: it is asked once without padding.
void FrontEnd::pad_vocabulary() {
    const Options& options = plan_.job.options;
    model::ModelSpec& model = plan_.job.model;
    model.padded_vocab = 0;
    if (options.padded_vocab_size == 0 && options.indivisible != Indivisible::pad) {
        return;
    }
    if (options.padded_vocab_size > 0 && options.padded_vocab_size < model.vocab) {
        diagnostics_.report("SP1006",
                            fmt::format("padded_vocab_size {} is less than the vocab_size {} of the model",
                                        options.padded_vocab_size, model.vocab),
                            "/options/padded_vocab_size");
        return;
    }
    model.padded_vocab = options.padded_vocab_size;
    std::string rule = "options.padded_vocab_size";
    if (model.padded_vocab == 0) {
        Job unpadded = plan_.job;
        unpadded.options.indivisible = Indivisible::strict;
        diag::Diagnostics unheard;
        FrontEnd trial(unpadded, unheard);
        trial.run();
        const std::int64_t parts = trial.placer_.vocabulary_parts();
        if (model.vocab % parts != 0) {
            model.padded_vocab = padded_vocabulary(model.vocab, parts);
            rule = fmt::format("the next multiple of 128 * {}", parts);
        }
    }
    if (model.padded_vocab > model.vocab) {
        const std::int64_t rows = model.padded_vocab - model.vocab;
        diagnostics_.report(
            "SP4014",
            fmt::format("vocab_size {} is padded to {} ({}): {} rows ({:.2f} %) of embedding and head "
                        "hold nothing",
                        model.vocab, model.padded_vocab, rule, rows,
                        100.0 * static_cast<double>(rows) / static_cast<double>(model.padded_vocab)),
            "/options",
            "logits of padded ids are left out of every result; other numbers of devices may pad to other "
            "sizes: padded_vocab_size keeps one");
    }
}

SpecEntry FrontEnd::axes_of(Semantic semantic, const char* tensor) {
    return placer_.existing_axes(plan_.job.partition_axis.resolve(semantic, phase_of(plan_.job)), tensor);
}

/// Whether the tokens of a step can be cut over the head axes as well, as the inference provider needs. Where the job
/// asks for it, SP5001 says which number would do.
bool FrontEnd::tokens_divisible(const SpecEntry& heads) {
    const model::Workload& workload = plan_.job.workload;
    const bool one_each = workload.query_length() == 1 && workload.continues();
    const Semantic length = partition::is_generation(phase_of(plan_.job)) ? Semantic::query_length : Semantic::length;
    SpecEntry axes = axes_of(one_each ? Semantic::batch : length, "hidden");
    for (const std::string& name : heads) {
        std::erase(axes, name);
        axes.push_back(name);
    }
    const std::int64_t tokens = one_each ? workload.batch_size : workload.query_length();
    const std::int64_t parts = placer_.size_of(axes);
    if (tokens % parts != 0 && placer_.size_of(heads) > 1 && plan_.job.provider == backend::ProviderChoice::inference) {
        const std::string_view name = one_each                               ? "batch_size"
                                      : workload.chunked()                   ? "chunk_length"
                                      : workload.mode == model::Mode::insert ? "insert_length"
                                                                             : "sequence_length";
        diagnostics_.report(
            "SP5001",
            fmt::format("provider 'inference' cannot be used: its residual stream is cut by tokens over {}, "
                        "and {} {} is no multiple of that (remainder {})",
                        describe_axes(axes, plan_.job.mesh), name, tokens, tokens % parts),
            "/backend/provider",
            fmt::format("the next {} that works is {}; or use \"auto\"", name,
                        base::checked_mul(base::ceil_div(tokens, parts), parts)));
    }
    return tokens % parts == 0;
}

bool FrontEnd::choose_provider() {
    const SpecEntry heads = axes_of(Semantic::head, "query");
    backend::ProviderConditions conditions;
    conditions.tensor_parallel = placer_.size_of(heads);
    conditions.sequence_parallel = true;
    conditions.experts = plan_.job.experts;
    const bool divisible = tokens_divisible(heads);
    const bool refused =
        !divisible && conditions.tensor_parallel > 1 && plan_.job.provider == backend::ProviderChoice::inference;
    conditions.tokens_divisible = divisible || refused;  // a refusal has been said with its numbers
    conditions.int8_weights = plan_.job.int8_weights;
    auto decision = backend::choose_provider(plan_.job.provider, provider_compat(plan_.job), plan_.job.model,
                                             plan_.job.workload, conditions, "/backend/provider", diagnostics_);
    if (!decision || refused) {
        return false;
    }
    plan_.provider = std::move(*decision);
    if (plan_.provider.kind == backend::ProviderKind::inference && conditions.tensor_parallel > 1) {
        token_parallel_ = heads;
    }
    remark_on_provider(heads, conditions);
    return true;
}

/// What Megatron would refuse although this plan is good.
void FrontEnd::remark_on_provider(const SpecEntry& heads, backend::ProviderConditions conditions) {
    const SpecEntry sequence = axes_of(Semantic::length, "hidden");
    conditions.sequence_parallel = std::any_of(sequence.begin(), sequence.end(), [&](const std::string& axis) {
        return std::find(heads.begin(), heads.end(), axis) != heads.end();
    });
    conditions.context_parallel = placer_.size_of(axes_of(Semantic::kv_length, "key"));
    if (plan_.job.model.moe.experts > 0) {
        SpecEntry within = axes_of(Semantic::mlp_intermediate, "experts");
        for (const std::string& axis : axes_of(Semantic::expert, "experts")) {
            std::erase(within, axis);
        }
        conditions.expert_tensor_parallel = placer_.size_of(within);
    }
    for (const std::string& remark :
         backend::remarks(plan_.provider.kind, provider_compat(plan_.job), plan_.job.model, conditions)) {
        diagnostics_.report("SP5003", fmt::format("provider '{}': {}", to_string(plan_.provider.kind), remark),
                            "/backend/provider", "\"fused\" stands for Megatron's transformer_engine, which can do it");
    }
}

void FrontEnd::build_graph() {
    const bool absorb = plan_.provider.kind == backend::ProviderKind::inference;
    plan_.graph = model::build_graph(plan_.job.model, plan_.job.workload, absorb);
    if (plan_.job.rule_source != partition::RuleSource::derived) {
        rules_ = rule_table(plan_.job, diagnostics_);
    }
    if (rules_ && plan_.job.rule_source == partition::RuleSource::custom && rules_->depends_on_layer()) {
        split_layers();
    }
}

void FrontEnd::split_layers() {
    constexpr std::int64_t most_matches = 1'000'000;
    const auto names = static_cast<std::int64_t>(plan_.graph.parameters.size()) * plan_.job.model.layer_count();
    const auto count = static_cast<std::int64_t>(rules_->rules().size());
    if (names > most_matches / count) {
        diagnostics_.report("SP4005",
                            fmt::format("{} rules that can tell {} layers apart are more than this planner matches",
                                        count, plan_.job.model.layer_count()),
                            "/partition_rules", "write patterns without layer numbers");
        return;
    }
    split_layers_by_rules(plan_.graph, *rules_);
}

void FrontEnd::place() {
    for (const model::Block& block : plan_.graph.blocks) {
        for (const model::TensorInfo& tensor : block.tensors) {
            if (tensor.kind != model::TensorKind::parameter) {
                asks_->ask(tensor.role, tensor.shape);
            }
        }
    }
    plan_.stored = place_stored_tensors(plan_.job, plan_.graph, plan_.mesh, rules_ ? &*rules_ : nullptr, placer_,
                                        *asks_, diagnostics_);
    plan_.token_order = token_order_of(plan_, *asks_, diagnostics_);
}

void FrontEnd::note_unused_options() {
    const model::Workload& workload = plan_.job.workload;
    if (workload.mode == model::Mode::insert && phase_of(plan_.job) == Phase::prefill) {
        plan_.notes.push_back(fmt::format(
            "compat seed: {} tokens are written at once and have the fields of prefill, as the generation fields hold "
            "for one token only; compat current has decode fields for an insert",
            workload.query_length()));
    }
    const Options& options = plan_.job.options;
    const bool set = options.cp_comm_type != CpCommType::automatic || options.context_parallel_load_balance;
    if (set && workload.continues()) {
        plan_.notes.emplace_back("cp_comm_type and context_parallel_load_balance concern prefill only");
    }
}

void FrontEnd::check() {
    const CheckContext context{plan_, *asks_, placer_, diagnostics_};
    check_attention_bias(context);
    check_quantization(context);
    check_positions(context);
    check_head_dim(context);
    check_sequence_parallel(context);
    note_unused_options();
    const bool all_placed = diagnostics_.error_count() == errors_before_;
    check_tied_rules(context);
    if (all_placed) {  // a refused entry counts as None and would mislead these
        check_unused_axes(context);
        check_unused_rules(context);
        check_kv_replication(context);
        check_expert_options(context);
        check_dispatcher(context);
        check_unsharded_parameters(context);
        check_stored_memory(context);
    }
}

}  // namespace shardplan::plan
