#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <string>
#include <vector>

#include "plan/checks/checks.h"
#include "plan/front_end.h"
#include "plan/sequence_parallel.h"

namespace shardplan::plan {
namespace {

constexpr const char* type_pointer = "/options/cp_comm_type";
constexpr const char* balance_pointer = "/options/context_parallel_load_balance";

/// The other ways, and for Ulysses the sizes of the sequence axes that would do.
std::string hint_for(const CheckContext& context, CpCommType type, const SequenceAxes& axes) {
    const std::int64_t heads = context.plan.job.model.attention.heads;
    const RefinedMesh& mesh = context.plan.mesh;
    std::vector<std::string> possible;
    for (const CpCommType other : {CpCommType::all_gather, CpCommType::p2p, CpCommType::a2a}) {
        if (refusal(other, axes, heads, mesh).empty()) {
            possible.push_back(fmt::format("\"{}\"", to_string(other)));
        }
    }
    std::string hint = fmt::format("ways that work here: {}, or \"auto\"", fmt::join(possible, ", "));
    const std::int64_t tensor = mesh.refined().size(axes.heads);
    if (type == CpCommType::a2a && heads % tensor == 0) {
        hint += fmt::format("; \"a2a\" works over {} devices of the sequence axes", divisors_text(heads / tensor));
    }
    return hint;
}

void check_way(const CheckContext& context, const SequenceAxes& axes) {
    const CpCommType type = context.plan.job.options.cp_comm_type;
    const std::string why = refusal(type, axes, context.plan.job.model.attention.heads, context.plan.mesh);
    if (!why.empty()) {
        context.diagnostics.report("SP4020",
                                   fmt::format("cp_comm_type \"{}\" is not possible: {}", to_string(type), why),
                                   type_pointer, hint_for(context, type, axes));
    }
}

}  // namespace

void check_sequence_parallel(const CheckContext& context) {
    const Options& options = context.plan.job.options;
    const bool fixed = options.cp_comm_type != CpCommType::automatic;
    if (context.plan.job.workload.continues() || (!fixed && !options.context_parallel_load_balance)) {
        return;
    }
    for (const model::Block& block : context.plan.graph.blocks) {
        if (const model::Op* attention = sequence_parallel_attention(block, context.asks)) {
            return check_way(context, sequence_axes(*attention, block, context.asks));
        }
    }
    if (context.diagnostics.has_errors()) {  // an axis that does not divide counts as none
        return;
    }
    const char* const name = fixed ? "cp_comm_type" : "context_parallel_load_balance";
    context.diagnostics.report(
        "SP4021",
        fmt::format("{} has no effect: {}", name,
                    context.plan.job.workload.chunked() ? "chunks attend to the cache, whose sums are merged"
                                                        : "no axis cuts the sequence of both queries and keys"),
        fixed ? type_pointer : balance_pointer,
        "name an axis of size 2 or more in query_sequence_axis and key_sequence_axis");
}

TokenOrder token_order_of(const Plan& plan, ActivationSpecs& asks, diag::Diagnostics& diagnostics) {
    const Job& job = plan.job;
    if (!job.options.context_parallel_load_balance || job.workload.continues()) {
        return {};
    }
    for (const model::Block& block : plan.graph.blocks) {
        const model::Op* attention = sequence_parallel_attention(block, asks);
        if (attention == nullptr) {
            continue;
        }
        const std::int64_t parts = plan.mesh.refined().size(sequence_axes(*attention, block, asks).queries);
        const std::int64_t length = job.workload.sequence_length;
        if (length % (2 * parts) == 0) {
            return TokenOrder::zigzag(length, parts);
        }
        const bool drop = job.options.indivisible == Indivisible::drop;
        diagnostics.report(
            drop ? "SP4004" : "SP4020",
            fmt::format(
                "context_parallel_load_balance gives each of {} devices two chunks: sequence_length {} is not a "
                "multiple of {}{}",
                parts, length, 2 * parts, drop ? "; the tokens keep their order" : ""),
            balance_pointer,
            length < 2 * parts ? fmt::format("sequence_length {} would do", 2 * parts)
                               : fmt::format("sequence_length {} or {} would do", length / (2 * parts) * 2 * parts,
                                             (length / (2 * parts) + 1) * 2 * parts));
        break;
    }
    return {};
}

}  // namespace shardplan::plan
