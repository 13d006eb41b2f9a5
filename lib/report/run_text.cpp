#include "report/run_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ostream>
#include <string_view>

#include "report/number_text.h"
#include "report/table.h"
#include "report/utf8.h"

namespace shardplan::report {
namespace {

std::string_view verdict(bool equal) {
    return equal ? "equal" : "DIFFER";
}

Paint paint_of(bool good) {
    return good ? Paint::plain : Paint::error;
}

void write_section(std::ostream& out, const Style& style, std::string_view title) {
    out << '\n' << paint(style, Paint::heading, title) << '\n';
}

/// "rank 0: cores 0-1", neighbouring ranks with the same cores together.
void write_binding(std::ostream& out, const RunSummary& run, const Style& style) {
    std::vector<std::string> parts;
    for (std::size_t first = 0; first < run.binding.size();) {
        std::size_t end = first + 1;
        while (end < run.binding.size() && run.binding[end] == run.binding[first]) {
            ++end;
        }
        const RankBinding& rank = run.binding[first];
        const std::string ranks =
            end - first == 1 ? fmt::format("rank {}", first) : fmt::format("ranks {}-{}", first, end - 1);
        const std::string host = rank.host == run.binding.front().host ? "" : " of " + rank.host;
        parts.push_back(fmt::format("{}: cores {}{}", ranks, rank.cores, host));
        first = end;
    }
    if (!parts.empty()) {
        out << paint(style, Paint::heading, fmt::format("{:<10}", "binding"))
            << printable(fmt::format("{}", fmt::join(parts, "; "))) << '\n';
    }
}

void write_head(std::ostream& out, const RunSummary& run, const Style& style) {
    const auto fact = [&](std::string_view label, std::string_view text) {
        out << paint(style, Paint::heading, fmt::format("{:<10}", label)) << printable(text) << '\n';
    };
    fact("run", run.job);
    fact("plan", run.plan_hash);
    fact("mesh", run.mesh);
    fact("ranks", fmt::format("{}, {} thread{} each", run.ranks, run.threads, run.threads == 1 ? "" : "s"));
    write_binding(out, run, style);
    fact("provider", fmt::format("{}, {} kernels", run.provider, run.kernels));
}

void write_comparison(std::ostream& out, const VerifyResult& verify, const std::string& verdict) {
    out << "  " << verdict << fmt::format(": {}\n", printable(verify.tolerance));
    out << fmt::format("  {} elements: max_abs {}, max_rel {}, rms_rel {}\n", count_text(verify.elements),
                       error_text(verify.max_abs), error_text(verify.max_rel), error_text(verify.rms_rel));
    if (verify.own_rms > 0.0) {
        out << fmt::format(
            "  compared with f32 activations, from which bf16 alone moves the unsharded model by rms_rel {}\n",
            error_text(verify.own_rms));
    }
    if (verify.routing_ties > 0) {
        out << fmt::format("  {} choice{} of experts at near ties taken over by the unsharded model\n",
                           count_text(verify.routing_ties), verify.routing_ties == 1 ? "" : "s");
    }
    if (!verify.worst_index.empty()) {
        out << fmt::format("  worst at [{}]: {} instead of {}\n", fmt::join(verify.worst_index, ", "), verify.actual,
                           verify.expected);
    }
}

void write_verify(std::ostream& out, const RunSummary& run, const Style& style) {
    write_section(out, style,
                  run.rounding ? "Result against the unsharded model of the same int8 weights"
                               : "Result against the unsharded model");
    if (!run.verify) {
        out << "  not checked\n";
        return;
    }
    write_comparison(
        out, *run.verify,
        paint(style, run.verify->passed ? Paint::good : Paint::error, run.verify->passed ? "passed" : "FAILED"));
    if (run.rounding) {
        write_section(out, style, "Result against the unsharded model of the weights before rounding to int8");
        write_comparison(out, *run.rounding,
                         run.rounding->passed ? "as expected of rounding"
                                              : paint(style, Paint::warning, "more than expected of rounding"));
    }
}

void write_generated(std::ostream& out, const RunSummary& run, const Style& style) {
    if (!run.generated) {
        return;
    }
    write_section(out, style, "Generated tokens");
    for (std::size_t b = 0; b < run.generated->ids.size(); ++b) {
        out << fmt::format("  sequence {}: {}\n", b, fmt::join(run.generated->ids[b], " "));
    }
    if (run.generated->mismatches) {
        out << fmt::format("  {} of {} as the unsharded model generates them\n",
                           run.generated->count() - *run.generated->mismatches, run.generated->count());
    }
    if (run.generated->changed_by_rounding) {
        out << fmt::format("  {} of {} as that of the weights before rounding would\n",
                           run.generated->count() - *run.generated->changed_by_rounding, run.generated->count());
    }
}

/// "equal", or for exchanges that the data decide: "as routed, at most 4,096".
std::string bytes_verdict(const CollectiveCount& row) {
    if (!row.most) {
        return std::string(verdict(row.bytes.equal()));
    }
    const bool as_routed = row.bytes.counted == row.routed.value_or(row.bytes.counted);
    const std::string found =
        row.routed ? (as_routed ? "as routed, " : fmt::format("ROUTED {}, ", count_text(*row.routed))) : "";
    return fmt::format("{}{} {}", found, row.bytes.counted <= *row.most ? "at most" : "MORE THAN",
                       count_text(*row.most));
}

void write_collectives(std::ostream& out, const RunSummary& run, const Style& style) {
    write_section(out, style, "Communication of all steps and ranks");
    if (run.collectives.empty()) {
        out << "  none\n";
        return;
    }
    Table table({{"kind"},
                 {"calls predicted", true},
                 {"counted", true},
                 {""},
                 {"bytes predicted", true},
                 {"counted", true},
                 {""}});
    for (const CollectiveCount& row : run.collectives) {
        table.add_row({row.kind, count_text(row.calls.predicted), count_text(row.calls.counted),
                       std::string(verdict(row.calls.equal())), count_text(row.bytes.predicted),
                       count_text(row.bytes.counted), bytes_verdict(row)},
                      paint_of(row.holds()));
    }
    table.print(out, style);
}

void write_memory(std::ostream& out, const RunSummary& run, const Style& style) {
    write_section(out, style, "Memory per device");
    Table table({{"for"}, {"bytes predicted", true}, {"allocated", true}, {""}, {"size", true}});
    for (const MemoryCount& row : run.memory) {
        table.add_row({row.category, count_text(row.bytes.predicted), count_text(row.bytes.counted),
                       std::string(verdict(row.bytes.equal())), bytes_text(row.bytes.counted)},
                      paint_of(row.bytes.equal()));
    }
    table.add_row(
        {"kernel scratch", "", count_text(run.kernel_scratch_bytes), "", bytes_text(run.kernel_scratch_bytes)},
        Paint::muted);
    table.print(out, style);
    if (run.resident_bytes > 0) {
        // The program, its libraries and MPI are not planned: only beside large models they do not count.
        constexpr std::int64_t large = std::int64_t{1} << 28;
        const std::string ratio =
            run.planned_bytes < large
                ? ""
                : fmt::format(", {:.2f} times as much",
                              static_cast<double>(run.resident_bytes) / static_cast<double>(run.planned_bytes));
        out << fmt::format("  planned {}, peak resident memory of a rank {}{}\n", bytes_text(run.planned_bytes),
                           bytes_text(run.resident_bytes), ratio);
    }
}

void write_times(std::ostream& out, const RunSummary& run, const Style& style) {
    write_section(out, style, "Time of one step of the model");
    out << fmt::format("  {}, {:.1f} tokens/s\n", seconds_text(run.step_seconds), run.tokens_per_second);
    if (run.step_flops > 0.0 && run.step_seconds > 0.0) {
        out << fmt::format("  {:.1f} GFLOP/s", 1e-9 * run.step_flops / run.step_seconds);
        if (run.step_bytes > 0) {
            out << fmt::format(", {:.1f} GB/s of weights and cache",
                               1e-9 * static_cast<double>(run.step_bytes) / run.step_seconds);
        }
        out << '\n';
    }
    if (run.times.empty()) {
        return;
    }
    double whole = run.outside_seconds;
    for (const StepTime& time : run.times) {
        whole += time.seconds;
    }
    Table table({{"steps"}, {"calls", true}, {"time", true}, {"share", true}});
    for (const StepTime& time : run.times) {
        table.add_row({time.kind, count_text(time.calls), seconds_text(time.seconds),
                       percent_text(whole > 0.0 ? time.seconds / whole : 0.0)});
    }
    table.add_row({"between steps", "", seconds_text(run.outside_seconds),
                   percent_text(whole > 0.0 ? run.outside_seconds / whole : 0.0)},
                  Paint::muted);
    table.print(out, style);
}

}  // namespace

bool RunSummary::predictions_hold() const {
    return std::all_of(collectives.begin(), collectives.end(),
                       [](const CollectiveCount& row) { return row.holds(); }) &&
           std::all_of(memory.begin(), memory.end(), [](const MemoryCount& row) { return row.bytes.equal(); });
}

bool RunSummary::passed() const {
    return predictions_hold() && (!verify || verify->passed);
}

void write_run_text(std::ostream& out, const RunSummary& run, const Style& style) {
    write_head(out, run, style);
    write_verify(out, run, style);
    write_generated(out, run, style);
    write_collectives(out, run, style);
    write_memory(out, run, style);
    write_times(out, run, style);
    if (!run.notes.empty()) {
        write_section(out, style, "Notes");
        for (const std::string& note : run.notes) {
            out << "  - " << printable(note) << '\n';
        }
    }
}

}  // namespace shardplan::report
