#include "arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <limits>

#include "base/spelling.h"

namespace shardplan::app {
namespace {

constexpr const char* footer =
    "Exit codes: 0 fine; 1 findings (invalid, infeasible, mismatch); 2 could not do the job (usage, unreadable, "
    "syntax); "
    "3 internal error; 130 interrupted.";

/// CLI11 saturates overflow and reads octal and hex; counts are read here instead.
std::int64_t parse_count(const std::string& option, const std::string& text, std::int64_t low, std::int64_t high) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < low || value > high) {
        throw UsageError(fmt::format("{} takes a whole number from {} to {}, got '{}'", option, low, high, text));
    }
    return value;
}

Output parse_output(const std::string& text) {
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    const std::string file = equals == std::string::npos ? "" : text.substr(equals + 1);
    if (name == "text") {
        return {Format::text, file};
    }
    if (name == "json") {
        return {Format::json, file};
    }
    throw UsageError(fmt::format("--format takes text or json, optionally with =FILE, got '{}'", text));
}

/// The raw words of options that need more than CLI11's conversions.
struct Raw {
    std::string mesh, mode, layers, ranks, rank, seed, steps, threads, colour = "auto", output;
    std::vector<std::string> formats;
    bool no_verify = false;
};

void add_job_options(CLI::App& command, Arguments& arguments, Raw& raw) {
    command
        .add_option("job", arguments.job, "Job file, or a Hugging Face config.json with --mesh; - reads standard input")
        ->required();
    command.add_option("--mesh", raw.mesh, "Mesh instead of the job's: dp=2,tp=4 (one size may be -1)");
    command.add_option("--mode", raw.mode, "prefill or decode");
    command.add_option("--set", arguments.overrides.set, "Change the job: --set workload.batch_size=8 (repeatable)")
        ->allow_extra_args(false);
    command.add_option("--layers", raw.layers, "Only the first N layers of the model");
    command.add_option("--format", raw.formats, "text or json, optionally with =FILE (repeatable)")
        ->allow_extra_args(false);
    command.add_option("-o,--output", raw.output, "Write the result to FILE instead of standard output");
    command.add_option("--color", raw.colour, "always, never or auto")->take_last();
    command.add_flag("--ascii", arguments.ascii, "No characters beyond ASCII");
    command.add_flag("-q,--quiet", arguments.quiet, "Errors only");
}

void add_plan(CLI::App& app, Arguments& arguments, Raw& raw) {
    CLI::App* plan = app.add_subcommand("plan", "Print where every tensor lies and what every step moves");
    add_job_options(*plan, arguments, raw);
    plan->add_option("--ranks", raw.ranks, "Number of devices, for a mesh with a -1");
    plan->add_option("--rank", raw.rank, "List the index ranges that rank R holds");
    plan->add_option("--shards", arguments.shards, "Draw which devices hold which part of a tensor");
}

void add_run(CLI::App& app, Arguments& arguments, Raw& raw) {
    CLI::App* run = app.add_subcommand("run", "Run the plan on MPI ranks and compare it with the unsharded model");
    add_job_options(*run, arguments, raw);
    run->add_option("--ranks", raw.ranks, "Start mpirun with N ranks (default: the devices of the mesh)");
    run->add_option("--kernels", arguments.kernels, "onednn or reference");
    run->add_option("--seed", raw.seed, "Seed of weights and tokens (default 0)");
    run->add_option("--steps", raw.steps, "decode: measured steps after the prompt; prefill: runs (default 4)");
    run->add_option("--tokens", arguments.tokens, "Token ids from a JSON file, [batch][sequence]");
    run->add_option("--weights", arguments.weights, "Weights from a safetensors file, index or directory");
    run->add_option("--save-weights", arguments.save_weights, "Write the weights in use to DIR/model.safetensors");
    run->add_option("--logits", arguments.logits, "Write the logits (f32) to a safetensors file");
    run->add_flag("--verify,!--no-verify", arguments.verify, "Compare with the unsharded model (default on)");
    run->add_option("--threads", raw.threads, "Threads of each rank (default: cores / ranks of this host)");
}

std::uint64_t parse_seed(const std::string& text) {
    return static_cast<std::uint64_t>(parse_count("--seed", text, 0, std::numeric_limits<std::int64_t>::max()));
}

void convert(Arguments& arguments, const Raw& raw) {
    constexpr std::int64_t many = std::int64_t{1} << 40;
    if (!raw.mesh.empty()) {
        arguments.overrides.mesh = raw.mesh;
    }
    if (!raw.mode.empty()) {
        arguments.overrides.mode = raw.mode;
    }
    if (!raw.layers.empty()) {
        arguments.overrides.layers = parse_count("--layers", raw.layers, 1, 1'000'000);
    }
    if (!raw.ranks.empty()) {
        arguments.ranks = parse_count("--ranks", raw.ranks, 1, many);
        arguments.overrides.ranks = arguments.ranks;
    }
    if (!raw.rank.empty()) {
        arguments.rank = parse_count("--rank", raw.rank, 0, many);
    }
    if (!raw.seed.empty()) {
        arguments.seed = parse_seed(raw.seed);
    }
    if (!raw.steps.empty()) {
        arguments.steps = parse_count("--steps", raw.steps, 1, 100'000);
    }
    if (!raw.threads.empty()) {
        arguments.threads = static_cast<int>(parse_count("--threads", raw.threads, 1, 1024));
    }
    if (arguments.kernels != "onednn" && arguments.kernels != "reference") {
        throw UsageError(fmt::format("--kernels takes onednn or reference, got '{}'", arguments.kernels));
    }
    if (raw.colour != "auto" && raw.colour != "always" && raw.colour != "never") {
        throw UsageError(fmt::format("--color takes always, never or auto, got '{}'", raw.colour));
    }
    arguments.colour = raw.colour == "auto"     ? Colour::automatic
                       : raw.colour == "always" ? Colour::always
                                                : Colour::never;
    for (const std::string& format : raw.formats) {
        arguments.outputs.push_back(parse_output(format));
    }
    if (arguments.outputs.empty()) {
        arguments.outputs.push_back({});
    }
    if (!raw.output.empty()) {
        arguments.outputs.front().file = raw.output;
    }
}

/// "Did you mean" for the first word that no command or option takes.
std::string suggestion(const CLI::App& app, const std::vector<std::string>& words) {
    std::vector<std::string> known;
    const CLI::App* scope = &app;
    for (const CLI::App* command : app.get_subcommands({})) {
        known.push_back(command->get_name());
        if (command->parsed()) {
            scope = command;
        }
    }
    if (scope != &app) {
        known.clear();
    }
    for (const CLI::Option* option : scope->get_options()) {
        for (const std::string& name : option->get_lnames()) {
            known.push_back("--" + name);
        }
    }
    for (const std::string& word : words) {
        const std::string near = base::nearest_word(word, known);
        if (!near.empty() && near != word) {
            return fmt::format("; did you mean '{}'?", near);
        }
    }
    return "";
}

}  // namespace

Parsed parse_arguments(int argc, const char* const* argv) {
    Parsed parsed;
    Raw raw;
    Arguments& arguments = parsed.arguments;
    arguments.program = argv[0];
    CLI::App app("shardplan: plan, check and run the sharding of a transformer over a device mesh", "shardplan");
    app.footer(footer);
    app.set_version_flag("--version", "shardplan " SHARDPLAN_VERSION);
    app.require_subcommand(1);
    add_plan(app, arguments, raw);
    add_run(app, arguments, raw);
    app.add_subcommand("version", "Versions of shardplan and of the libraries it uses")
        ->add_option("--format", raw.formats, "text or json")
        ->allow_extra_args(false);
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        parsed.help = app.help();
        return parsed;
    } catch (const CLI::CallForVersion& version) {
        parsed.help = std::string(version.what()) + "\n";
        return parsed;
    } catch (const CLI::ParseError& error) {
        const std::vector<std::string> words(argv + 1, argv + argc);
        const bool unknown_command = argc > 1 && argv[1][0] != '-' && app.get_subcommands().empty();
        const std::string what = unknown_command ? fmt::format("there is no command '{}'", argv[1]) : error.what();
        throw UsageError(what + suggestion(app, words));
    }
    arguments.command = app.got_subcommand("plan")  ? Command::plan
                        : app.got_subcommand("run") ? Command::run
                                                    : Command::version;
    convert(arguments, raw);
    return parsed;
}

}  // namespace shardplan::app
