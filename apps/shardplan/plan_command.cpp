#include <fmt/format.h>

#include <iostream>
#include <stdexcept>

#include "commands.h"
#include "config/model_file.h"
#include "console.h"
#include "planned_job.h"
#include "report/plan_json.h"
#include "report/plan_text.h"
#include "report/shards_text.h"
#include "report/value_text.h"

namespace shardplan::app {
namespace {

/// Nothing is written for a rank or a tensor that the plan does not have.
void check_question(const Arguments& arguments, const plan::Plan& plan) {
    if (arguments.rank && *arguments.rank >= plan.job.mesh.device_count()) {
        throw UsageError("--rank takes a rank of the mesh, 0 to " + std::to_string(plan.job.mesh.device_count() - 1));
    }
    if (arguments.outputs.size() > 1 || arguments.outputs.front().format != Format::text) {
        throw UsageError("--rank and --shards answer in text only: leave out --format");
    }
    if (arguments.shards.empty()) {
        return;
    }
    const report::Lookup found = report::find_tensors(plan, arguments.shards);
    if (found.matches.empty()) {
        const std::string example = report::stored_name(plan.stored.front());
        throw UsageError(fmt::format("--shards: no tensor is called '{}'; {}", arguments.shards,
                                     found.hint.empty()
                                         ? fmt::format("names are those of the plan, such as {}", example)
                                         : fmt::format("did you mean '{}'?", found.hint)));
    }
}

/// --rank and --shards: a question about the plan instead of the plan.
ExitCode answer(const Arguments& arguments, const plan::Plan& plan) {
    check_question(arguments, plan);
    const Output& output = arguments.outputs.front();
    const report::Style style = style_for(arguments, output.file.empty() ? Stream::output : Stream::file);
    write_output(output, [&](std::ostream& out) {
        if (arguments.rank) {
            report::write_rank_text(out, plan, *arguments.rank, style);
        }
        if (!arguments.shards.empty()) {
            report::write_shards_text(out, plan, arguments.shards, style);
        }
    });
    return ExitCode::fine;
}

void write_plan(const Arguments& arguments, const Output& output, const PlannedJob& planned) {
    const report::Style style = style_for(arguments, output.file.empty() ? Stream::output : Stream::file);
    write_output(output, [&](std::ostream& out) {
        if (output.format == Format::json) {
            report::write_plan_json(out, *planned.plan, planned.diagnostics.all());
        } else {
            report::write_plan_text(out, *planned.plan, planned.diagnostics.all(), sources_of(planned.documents),
                                    style);
        }
    });
}

}  // namespace

ExitCode plan_command(const Arguments& arguments) {
    const PlannedJob planned = plan_job(arguments);
    refuse_overwriting(arguments.outputs, {config::config_in_directory(arguments.job)});
    refuse_overwriting(arguments.outputs, files_of(planned.documents));
    if (!planned.plan) {
        for (const Output& output : arguments.outputs) {
            if (output.format == Format::json) {
                write_output(
                    output, [&](std::ostream& out) { report::write_diagnostics_json(out, planned.diagnostics.all()); });
            }
        }
        print_diagnostics(planned.diagnostics, planned.documents, arguments);
        return code_for(planned.diagnostics);
    }
    if (arguments.rank || !arguments.shards.empty()) {
        return answer(arguments, *planned.plan);
    }
    for (const Output& output : arguments.outputs) {
        write_plan(arguments, output, planned);
    }
    return ExitCode::fine;
}

}  // namespace shardplan::app
