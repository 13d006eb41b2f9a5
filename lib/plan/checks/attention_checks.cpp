#include <fmt/format.h>

#include <algorithm>

#include "plan/checks/checks.h"
#include "plan/front_end.h"

namespace shardplan::plan {

using partition::Semantic;

void check_attention_bias(const CheckContext& context) {
    const Job& job = context.plan.job;
    const partition::Phase phase = phase_of(job);
    const auto resolve = [&](Semantic semantic) { return job.partition_axis.resolve(semantic, phase); };
    const partition::ResolvedEntry heads = resolve(Semantic::bias_head_seq);
    const partition::ResolvedEntry keys = resolve(Semantic::bias_kv_seq);
    if (!heads.given && !keys.given) {
        return;
    }
    const model::Workload& workload = job.workload;
    const std::int64_t key_length = workload.reads_cache() ? workload.cache_slots() : workload.sequence_length;
    context.placer.place("attention_bias", {{resolve(Semantic::batch), "batch_size", workload.batch_size},
                                            {heads, "num_attention_heads", job.model.attention.heads},
                                            {resolve(Semantic::query_length),
                                             workload.mode == model::Mode::insert ? "insert_length" : "sequence_length",
                                             workload.query_length()},
                                            {keys, "key_length", key_length}});
}

void check_head_dim(const CheckContext& context) {
    const Job& job = context.plan.job;
    const std::int64_t head_dim = job.model.attention.head_dim;
    for (const Semantic semantic : {Semantic::head_dim, Semantic::kv_head_dim}) {
        const auto entry = job.partition_axis.resolve(semantic, phase_of(job));
        const partition::SpecEntry axes = context.placer.existing_axes(entry, "query");
        if (context.placer.size_of(axes) > 1) {
            context.diagnostics.report(
                "SP4011",
                fmt::format("{} cuts head_dim {} over {}: every score is then a sum over these devices", entry.field,
                            head_dim, describe_axes(axes, job.mesh)),
                context.placer.pointer_of(entry), "cut whole heads instead: head_axis and kv_head_axis");
            break;
        }
    }
    if (head_dim % 8 != 0) {
        context.diagnostics.report(
            "SP2006",
            fmt::format("head_dim {} is not a multiple of 8: attention kernels of several systems refuse it", head_dim),
            "/model");
    }
}

void check_positions(const CheckContext& context) {
    const model::ModelSpec& model = context.plan.job.model;
    const model::Workload& workload = context.plan.job.workload;
    const std::int64_t positions = workload.positions();
    const bool computed = model.position_rows == 0 && !model.attention.alibi;
    if (computed && model.max_positions > 0 && positions > model.max_positions) {
        const std::int64_t behind = positions - workload.sequence_length;
        const bool insert = workload.mode == model::Mode::insert;
        const std::int64_t most = model.max_positions;
        // What is too long by itself, or else the sequence before it.
        const bool of_insert = insert && behind >= most;
        std::string hint = fmt::format("set sequence_length to {} or less", most - behind);
        if (behind >= most) {
            hint =
                !insert ? fmt::format("generate less than {} tokens", most)
                : workload.sequence_length >= most
                    ? fmt::format("make both add up to {} or less", most)
                    : fmt::format("set insert_length to {} or less",
                                  (most - workload.sequence_length) / std::max<std::int64_t>(1, workload.steps_ahead));
        }
        context.diagnostics.report(
            "SP6004",
            fmt::format("sequence_length {}{} reaches {} positions, the model's max_position_embeddings is {}",
                        workload.sequence_length,
                        insert ? fmt::format(" with insert_length {}", workload.insert_length) : "", positions, most),
            of_insert ? "/workload/insert_length" : "/workload/sequence_length", hint);
    }
}

}  // namespace shardplan::plan
