#include "report/plan_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ostream>
#include <string_view>

#include "base/checked.h"
#include "report/enum_text.h"
#include "report/number_text.h"
#include "report/pipeline_text.h"
#include "report/steps_text.h"
#include "report/table.h"
#include "report/tensors_text.h"
#include "report/text_width.h"
#include "report/utf8.h"
#include "report/value_text.h"

namespace shardplan::report {
namespace {

void write_section(std::ostream& out, const Style& style, std::string_view title) {
    out << '\n' << paint(style, Paint::heading, title) << '\n';
}

/// "label     text", wrapped with the text's indentation.
void write_fact(std::ostream& out, const Style& style, std::string_view label, std::string_view text) {
    constexpr int label_width = 10;
    bool first = true;
    for (const std::string& line : wrap(printable(text), std::max(style.width - label_width, 20))) {
        out << paint(style, Paint::heading, pad_right(first ? label : "", label_width)) << line << '\n';
        first = false;
    }
}

std::string heads_text(const model::AttentionSpec& attention) {
    if (!attention.is_latent()) {
        return fmt::format("{} heads, {} key/value heads of {}", attention.heads, attention.kv_heads,
                           attention.head_dim);
    }
    const model::LatentSpec& latent = attention.latent;
    const std::string queries = latent.q_rank > 0 ? fmt::format(", of queries {}", latent.q_rank) : "";
    return fmt::format("{} heads, keys of {} + {} rotated, values of {}, latent of {}{}", attention.heads,
                       latent.nope_dim, latent.rope_dim, latent.value_dim, latent.kv_rank, queries);
}

std::string model_text(const plan::Plan& plan) {
    const model::ModelSpec& model = plan.graph.model;
    return fmt::format("{}, {} layer{}, hidden {}, {}, intermediate {}, vocabulary {}{}{}; {} parameters ({})",
                       model.model_type, model.layer_count(), model.layer_count() == 1 ? "" : "s", model.hidden,
                       heads_text(model.attention), model.mlp.intermediate, model.vocab,
                       model.vocab_rows() > model.vocab ? fmt::format(" padded to {}", model.vocab_rows()) : "",
                       model.scores > 0 ? fmt::format(", scores {}", model.scores) : "",
                       count_text(plan.totals.parameters), bytes_text(plan.totals.parameter_bytes));
}

std::string workload_text(const model::Workload& workload) {
    const std::string cache =
        workload.cache_slots() == 0 ? "no cache" : fmt::format("cache of {} positions", workload.cache_slots());
    return fmt::format("{}: {} sequence{}, {} {} each, {}, {}", to_string(workload.mode), workload.total_batch(),
                       workload.total_batch() == 1   ? ""
                       : workload.micro_batches == 1 ? "s"
                                                     : fmt::format("s in {} micro-batches", workload.micro_batches),
                       workload.sequence_length,
                       workload.chunked() ? fmt::format("tokens, in chunks of {}", workload.chunk_length)
                       : workload.mode == model::Mode::insert
                           ? fmt::format("tokens in the cache, {} written behind them", workload.insert_length)
                       : workload.continues() ? "tokens in the cache, one new token behind them"
                                              : "tokens",
                       cache, tensor::to_string(workload.dtype));
}

void write_head(std::ostream& out, const plan::Plan& plan, const Style& style) {
    const plan::Job& job = plan.job;
    write_fact(out, style, "plan", job.name);
    write_fact(out, style, "model", model_text(plan));
    write_fact(out, style, "workload", workload_text(job.workload));
    if (!plan.token_order.plain()) {
        const std::int64_t parts = plan.token_order.parts();
        write_fact(out, style, "",
                   fmt::format("zig-zag: part i of {} holds chunks i and {}-i of {} of each sequence", parts,
                               2 * parts - 1, 2 * parts));
    }
    write_fact(out, style, "mesh", mesh_text(plan.mesh.original()));
    if (!(plan.mesh.refined() == plan.mesh.original())) {
        write_fact(out, style, "", fmt::format("split for heads: {}", mesh_text(plan.mesh.refined())));
    }
    write_fact(
        out, style, "rules",
        fmt::format("{}; dialect {}, indivisible {}, kv_heads {}", text_of(job.rule_source),
                    text_of(job.options.compat), text_of(job.options.indivisible), text_of(job.options.kv_heads)));
    write_fact(out, style, "provider",
               fmt::format("{} (asked for: {})", to_string(plan.provider.kind), text_of(job.provider)));
    for (const std::string& reason : plan.provider.reasons) {
        write_fact(out, style, "", "- " + reason);
    }
}

/// The steps that the workload takes: "4 chunks", "8 micro-batches".
struct Repeats {
    std::int64_t count = 1;
    std::string_view name;
};

Repeats repeats_of(const plan::Plan& plan) {
    const model::Workload& workload = plan.job.workload;
    return workload.chunked() ? Repeats{workload.step_count(), "chunks"}
                              : Repeats{workload.micro_batches, "micro-batches"};
}

/// What all steps together move: each moves the same.
void write_all_collectives(std::ostream& out, const plan::Plan& plan) {
    const Repeats repeats = repeats_of(plan);
    if (repeats.count == 1) {
        return;
    }
    std::int64_t calls = 0;
    std::int64_t wire = 0;
    std::int64_t all = 0;
    for (const plan::CollectiveTotal& total : plan.collectives) {
        calls = base::checked_add(calls, total.count);
        wire = base::checked_add(wire, total.wire_bytes);
        all = base::checked_add(all, total.wire_bytes_total);
    }
    const auto times = [&](std::int64_t value) { return base::checked_mul(repeats.count, value); };
    out << fmt::format("  all {} {}: {} calls, {} per device, {} of all devices\n", repeats.count, repeats.name,
                       count_text(times(calls)), bytes_text(times(wire)), bytes_text(times(all)));
}

void write_collectives(std::ostream& out, const plan::Plan& plan, const Style& style) {
    write_section(out, style, fmt::format("Collectives of {}", plan.job.workload.step_name()));
    if (plan.collectives.empty()) {
        out << "  none\n";
        return;
    }
    Table table({{"kind"},
                 {"axes"},
                 {"calls", true},
                 {"payload/device", true},
                 {"wire/device", true},
                 {"wire, all devices", true}});
    for (const plan::CollectiveTotal& total : plan.collectives) {
        table.add_row({std::string(to_string(total.kind)), fmt::format("{}", fmt::join(total.axes, ",")),
                       count_text(total.count), bytes_text(total.payload_bytes), bytes_text(total.wire_bytes),
                       bytes_text(total.wire_bytes_total)});
    }
    table.print(out, style);
    write_all_collectives(out, plan);
}

std::string bar(std::int64_t part, std::int64_t whole, const Style& style) {
    constexpr int full = 30;
    const double share = whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
    return repeat(marks(style).full_bar, static_cast<int>(share * full + 0.5));
}

void write_memory(std::ostream& out, const plan::MemoryPerDevice& memory, std::string_view title, const Style& style) {
    write_section(out, style, title);
    Table table({{"for"}, {"size", true}, {"bytes", true}, {"share", true}, {""}});
    const auto row = [&](const char* name, std::int64_t bytes) {
        const double whole = static_cast<double>(std::max<std::int64_t>(memory.total(), 1));
        table.add_row({name, bytes_text(bytes), count_text(bytes), percent_text(static_cast<double>(bytes) / whole),
                       bar(bytes, memory.total(), style)});
    };
    row("parameters", memory.parameters);
    row("KV cache", memory.cache);
    row("arena of all steps", memory.arena);
    row("  activations at their peak", memory.activations);
    row("  communication buffers", memory.communication);
    row("total", memory.total());
    table.print(out, style);
}

void write_totals(std::ostream& out, const plan::Plan& plan, const Style& style) {
    const plan::Totals& totals = plan.totals;
    write_section(out, style, "Totals");
    out << fmt::format("  parameters {}, {}\n", count_text(totals.parameters),
                       exact_bytes_text(totals.parameter_bytes));
    out << fmt::format("  {} per device in {}", flops_text(totals.flops_per_device), plan.job.workload.step_name());
    if (const Repeats repeats = repeats_of(plan); repeats.count > 1) {
        out << fmt::format(", {} in all {} {}",
                           flops_text(totals.flops_per_device * static_cast<double>(repeats.count)), repeats.count,
                           repeats.name);
    }
    out << '\n';
    out << fmt::format("  {} of the parameters are cut by no axis\n", percent_text(totals.unsharded_fraction));
}

void write_notes(std::ostream& out, const plan::Plan& plan, const Style& style) {
    if (plan.notes.empty()) {
        return;
    }
    write_section(out, style, "Notes");
    for (const std::string& note : plan.notes) {
        bool first = true;
        for (const std::string& line : wrap(printable(note), std::max(style.width - 4, 20))) {
            out << (first ? "  - " : "    ") << line << '\n';
            first = false;
        }
    }
}

}  // namespace

void write_plan_text(std::ostream& out, const plan::Plan& plan, const std::vector<diag::Diagnostic>& diagnostics,
                     const Sources& sources, const Style& style, const PlanTextOptions& options) {
    write_head(out, plan, style);
    write_section(out, style, "Stored tensors");
    write_tensors_text(out, plan, style);
    if (options.reasons) {
        write_section(out, style, "Why they are cut so");
        write_reasons_text(out, plan, style);
    }
    if (options.steps) {
        const std::vector<std::int64_t> uses = uses_of_blocks(plan);
        for (std::size_t i = 0; i < plan.blocks.size(); ++i) {
            out << '\n';
            write_block_text(out, plan, plan.blocks[i], uses[i], style);
        }
    }
    write_pipeline_text(out, plan, style);
    write_collectives(out, plan, style);
    write_memory(out, plan.memory,
                 plan.stages.size() > 1 ? "Memory per device of the stage that needs the most" : "Memory per device",
                 style);
    write_totals(out, plan, style);
    write_notes(out, plan, style);
    if (!diagnostics.empty()) {
        write_section(out, style, "Diagnostics");
        write_diagnostics_text(out, diagnostics, sources, style);
    }
}

}  // namespace shardplan::report
