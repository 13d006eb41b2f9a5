#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <new>
#include <stdexcept>

#include "base/output_path.h"
#include "comm/communicator.h"
#include "commands.h"
#include "config/model_file.h"
#include "config/safetensors.h"
#include "config/token_file.h"
#include "console.h"
#include "launcher.h"
#include "planned_job.h"
#include "report/plan_json.h"
#include "report/run_text.h"
#include "report/trace_json.h"
#include "run_result.h"

namespace shardplan::app {
namespace {

/// The unsharded model that the run is compared with: the same model on one device, every axis field None. Where the
/// number of positions decides the frequencies of rope it has those of the plan, whose steps may end before it.
std::optional<plan::Plan> reference_plan(const plan::Plan& plan, std::int64_t tokens) {
    plan::Job job = plan.job;
    job.mesh = mesh::Mesh({{"device", 1}});
    for (const partition::FieldInfo& field : partition::PartitionAxis::fields(job.partition_axis.compat())) {
        job.partition_axis.set(field.name, {}, "");
    }
    job.model.attention.rope = plan.graph.model.attention.rope;
    job.model.attention.local_rope = plan.graph.model.attention.local_rope;
    job.model.attention.rope.original_positions = job.model.attention.local_rope.original_positions = 0;
    job.rule_source = partition::RuleSource::derived;
    job.custom_rules.clear();
    job.provider = backend::ProviderChoice::local;
    job.int8_weights = false;
    job.workload.mode = model::Mode::prefill;
    job.workload.sequence_length = tokens;
    job.workload.cache_length = 0;
    job.workload.chunk_length = 0;
    job.workload.steps_ahead = 1;
    job.workload.batch_size = plan.job.workload.total_batch();
    job.workload.micro_batches = 1;
    job.pipeline.reset();
    job.options.indivisible = plan::Indivisible::strict;
    job.options.padded_vocab_size = 0;
    diag::Diagnostics diagnostics;
    return plan::make_plan(job, diagnostics);
}

/// Before anything runs: can the results be written, is the checkpoint there?
void check_paths(const Arguments& arguments) {
    std::vector<Output> outputs = arguments.outputs;
    for (const std::string& file : {arguments.logits, arguments.trace, arguments.save_weights}) {
        outputs.push_back({Format::json, file});
    }
    refuse_overwriting(outputs, {config::config_in_directory(arguments.job), arguments.tokens, arguments.weights});
    if (!arguments.weights.empty() && !std::filesystem::exists(arguments.weights)) {
        throw UsageError(fmt::format("--weights: there is no '{}'", arguments.weights));
    }
    for (const auto& [option, path] : {std::pair{"--logits", arguments.logits},
                                       {"--save-weights", arguments.save_weights},
                                       {"--trace", arguments.trace}}) {
        if (path.empty()) {
            continue;
        }
        const bool directory_wanted = std::string_view(option) == "--save-weights";
        if (path == "-" || std::filesystem::is_directory(path) != (directory_wanted && std::filesystem::exists(path))) {
            throw UsageError(
                fmt::format("{}: '{}' is not the name of a {}", option, path, directory_wanted ? "directory" : "file"));
        }
        std::filesystem::path directory = std::filesystem::absolute(path).parent_path();
        while (directory_wanted && !std::filesystem::exists(directory)) {
            directory = directory.parent_path();  // the directory is made with its parents
        }
        if (!std::filesystem::is_directory(directory) || access(directory.c_str(), W_OK) != 0) {
            throw UsageError(fmt::format("{}: cannot write to '{}'", option, directory.string()));
        }
    }
}

/// One line on standard error, overwritten; an empty stage wipes it.
void show_progress(std::string_view stage) {
    std::cerr << fmt::format("\r\033[K{}{}", stage.empty() ? "" : "running: ", stage) << std::flush;
}

class Run {
public:
    Run(const Arguments& arguments, comm::World& world) : arguments_(arguments), world_(world) {}

    ExitCode go() {
        PlannedJob planned = read();
        if (!planned.plan) {
            return refuse(planned, code_for(planned.diagnostics));
        }
        const plan::Plan& plan = *planned.plan;
        if (plan.job.mesh.device_count() != world_.size()) {
            if (world_.rank() == 0) {
                std::cerr << fmt::format(
                    "shardplan: the mesh has {} devices, but {} ranks were started; started with\n  {}\n"
                    "they are as many as needed, as they are by `shardplan run` itself, without mpirun and --ranks\n",
                    plan.job.mesh.device_count(), world_.size(), mpirun_line(arguments_, plan.job.mesh.device_count()));
            }
            return ExitCode::failure;
        }
        if (!steps_fit(plan)) {
            return ExitCode::failure;
        }
        exec::RunOptions options = run_options(plan, planned.diagnostics);
        if (planned.diagnostics.has_errors()) {
            return refuse(planned, code_for(planned.diagnostics));
        }
        return execute(plan, planned, options);
    }

private:
    /// Behind a cache: it has room for so many steps: fewer than --steps is an error, fewer than the default is told.
    /// What --generate needs is checked where the job is read, and by the run.
    bool steps_fit(const plan::Plan& plan) const {
        exec::RunOptions options;
        options.steps = arguments_.steps;
        options.prompt_lengths = arguments_.prompt_lengths;
        if (!plan.job.workload.continues() || arguments_.overrides.generate ||
            exec::measured_steps(plan, options) == arguments_.steps) {
            return true;
        }
        const std::int64_t room = exec::measured_steps(plan, options);
        const model::Workload& workload = plan.job.workload;
        const std::int64_t longest = exec::longest_prompt(plan, options);
        const std::string problem = fmt::format(
            "after the {} tokens of the prompt there is room for {} step{}: {} needs a workload.cache_length of {}{}",
            longest, room, room == 1 ? "" : "s", arguments_.steps, longest + arguments_.steps * workload.query_length(),
            plan.job.model.position_rows > 0 ? ", and as many learned positions" : "");
        if (world_.rank() == 0 && (arguments_.steps_given || !arguments_.quiet)) {
            std::cerr << fmt::format("shardplan: {}: {}\n",
                                     arguments_.steps_given ? fmt::format("--steps {}", arguments_.steps)
                                                            : fmt::format("{} of {} steps run", room, arguments_.steps),
                                     problem);
        }
        return !arguments_.steps_given;
    }

    /// Rank 0 alone gets standard input from mpirun; it sends the text to the others.
    PlannedJob read() {
        if (arguments_.job != "-") {
            return plan_job(arguments_);
        }
        diag::Diagnostics diagnostics;
        config::JobSource source;
        source.name = "<stdin>";
        if (world_.rank() == 0) {
            if (const auto opened = config::open_job("-", diagnostics)) {
                source = *opened;
            }
        }
        world_.broadcast(source.text);
        if (!world_.agree(!diagnostics.has_errors())) {
            PlannedJob failed;
            failed.diagnostics = std::move(diagnostics);
            return failed;
        }
        return plan_job(source, arguments_.overrides);
    }

    ExitCode refuse(const PlannedJob& planned, ExitCode code) const {
        if (world_.rank() == 0) {
            print_diagnostics(planned.diagnostics, planned.documents, arguments_);
        }
        return code == ExitCode::fine ? ExitCode::failure : code;
    }

    exec::RunOptions run_options(const plan::Plan& plan, diag::Diagnostics& diagnostics) const {
        exec::RunOptions options;
        options.seed = arguments_.seed;
        options.plan_hash = report::plan_hash(plan);
        options.kernels = arguments_.kernels == "onednn" ? kernels::KernelSet::onednn : kernels::KernelSet::reference;
        options.steps = arguments_.steps;
        options.generate = arguments_.overrides.generate.has_value();
        options.prompt_lengths = arguments_.prompt_lengths;
        options.repeat = arguments_.repeat;
        options.verify = arguments_.verify;
        options.save_weights = arguments_.save_weights;
        options.logits_file = arguments_.logits;
        options.trace = !arguments_.trace.empty();
        options.threads = arguments_.threads;
        if (world_.rank() == 0 && !arguments_.quiet && style_for(arguments_, Stream::error).colour &&
            shows_progress()) {
            options.progress = show_progress;
        }
        if (!arguments_.weights.empty()) {
            options.checkpoint = config::read_checkpoint(arguments_.weights, diagnostics);
        }
        if (!arguments_.tokens.empty()) {
            const std::int64_t length = exec::tokens_given(plan, options);
            const auto ids = config::read_token_file(
                arguments_.tokens, {plan.job.workload.total_batch(), length, plan.job.model.vocab}, diagnostics);
            if (ids) {
                options.tokens = exec::TokenBatch{plan.job.workload.total_batch(), length, *ids};
            }
        }
        return options;
    }

    ExitCode execute(const plan::Plan& plan, const PlannedJob& planned, const exec::RunOptions& options) {
        const auto reference = reference_plan(plan, exec::tokens_needed(plan, options));
        if (!reference) {
            throw std::logic_error("the unsharded model has no plan, though the sharded one has");
        }
        const exec::RunReport run = exec::run_and_verify(plan, *reference, world_, options);
        if (options.progress) {
            show_progress("");
        }
        if (world_.rank() == 0) {
            diag::Diagnostics problems = planned.diagnostics;
            for (const diag::Diagnostic& problem : run.problems) {
                problems.add(problem);
            }
            print_diagnostics(problems, planned.documents, arguments_);
            if (run.oversubscribed && !arguments_.quiet) {
                std::cerr
                    << "shardplan: warning: more threads than cores: times are not comparable; --threads, or fewer "
                       "ranks on a host, change it\n";
            }
            if (run.executed_steps > 0) {
                write(summarise(plan, run, arguments_, options.plan_hash));
                if (options.trace) {
                    write_output({Format::json, arguments_.trace},
                                 [&](std::ostream& out) { report::write_trace_json(out, plan, trace_spans(run)); });
                }
            }
        }
        return run.passed ? ExitCode::fine : ExitCode::findings;
    }

    void write(const report::RunSummary& summary) const {
        for (const Output& output : arguments_.outputs) {
            const report::Style style = style_for(arguments_, output.file.empty() ? Stream::output : Stream::file);
            write_output(output, [&](std::ostream& out) {
                if (output.format == Format::json) {
                    report::write_run_json(out, summary);
                } else {
                    if (style.colour && shows_progress()) {
                        out << "\r\033[K";  // the progress line may still stand on the terminal
                    }
                    report::write_run_text(out, summary, style);
                }
            });
        }
    }

    const Arguments& arguments_;
    comm::World& world_;
};

/// Devices of the job, to start as many ranks; 1 when the job is wrong, which the single rank then reports.
std::int64_t ranks_to_start(const Arguments& arguments) {
    if (arguments.ranks) {
        return *arguments.ranks;
    }
    const PlannedJob planned = plan_job(arguments);
    return planned.plan ? planned.plan->job.mesh.device_count() : 1;
}

/// What the collectives read of the environment is as much a matter of usage as the options are.
void check_environment() {
    try {
        comm::GroupOptions::from_environment();
    } catch (const std::runtime_error& error) {
        throw UsageError(error.what());
    }
}

}  // namespace

ExitCode run_command(const Arguments& arguments, int argc, char** argv) {
    check_paths(arguments);
    check_environment();
    if (!comm::launched_by_mpirun()) {
        if (arguments.job == "-" && !arguments.ranks) {
            throw UsageError("run reads a job from standard input only under mpirun, or with --ranks");
        }
        const std::int64_t ranks = ranks_to_start(arguments);
        if (ranks > 1) {
            return launch_mpirun(arguments, ranks, argc, argv);
        }
        const auto world = comm::make_self_world();
        return Run(arguments, *world).go();
    }
    comm::Session session(argc, argv);
    const auto world = comm::make_mpi_world();
    Arguments with_ranks = arguments;
    with_ranks.overrides.ranks = world->size();
    try {
        return Run(with_ranks, *world).go();
    } catch (const UsageError& error) {
        std::cerr << "shardplan: " << error.what() << '\n';
        comm::Session::abort(value_of(ExitCode::failure));
    } catch (const base::OutputError& error) {
        std::cerr << fmt::format("shardplan: {}\n", error.what());
        comm::Session::abort(value_of(ExitCode::failure));
    } catch (const std::bad_alloc&) {
        std::cerr << fmt::format(
            "shardplan: rank {}: not enough memory here; `shardplan plan` says what a rank needs\n", world->rank());
        comm::Session::abort(value_of(ExitCode::failure));
    } catch (const std::exception& error) {
        std::cerr << fmt::format("shardplan: rank {}: {}\n", world->rank(), error.what());
        comm::Session::abort(value_of(ExitCode::internal));
    }
}

}  // namespace shardplan::app
