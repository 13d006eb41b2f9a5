#include "arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "base/output_path.h"
#include "base/spelling.h"
#include "config/assignment.h"
#include "diag/codes.h"

namespace shardplan::app {
namespace {

constexpr const char* footer =
    "Exit codes: 0 fine; 1 findings (invalid, infeasible, mismatch); 2 could not do the job (usage, unreadable; "
    "syntax, but for validate, where that and files a job names are findings); 3 internal error; 130 interrupted.";

/// CLI11 saturates overflow and reads octal and hex; counts are read here instead.
std::int64_t parse_count(const std::string& option, const std::string& text, std::int64_t low, std::int64_t high) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < low || value > high) {
        throw UsageError(fmt::format("{} takes a whole number from {} to {}, got '{}'", option, low, high, text));
    }
    return value;
}

/// "-" is standard output, which an empty name stands for.
std::string file_or_standard(const std::string& name) {
    return name == "-" ? "" : name;
}

Output parse_output(const std::string& text, bool for_findings) {
    constexpr std::array<std::string_view, 5> formats = {"text", "json", "github", "sarif", "junit"};  // as Format
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    if (equals != std::string::npos && equals + 1 == text.size()) {
        throw UsageError(fmt::format("--format {}: the name of the file is missing", text));
    }
    const auto* end = for_findings ? formats.end() : formats.begin() + 2;
    if (const auto* known = std::find(formats.begin(), end, name); known != end) {
        const std::string file = equals == std::string::npos ? "" : file_or_standard(text.substr(equals + 1));
        return {static_cast<Format>(known - formats.begin()), file};
    }
    throw UsageError(fmt::format("--format takes {}, optionally with =FILE, got '{}'",
                                 for_findings ? "text, json, github, sarif or junit" : "text or json", text));
}

const diag::CodeInfo& parse_code(const std::string& option, const std::string& text) {
    if (const diag::CodeInfo* info = diag::find_code(text)) {
        return *info;
    }
    std::vector<std::string> known;
    for (const diag::CodeInfo& info : diag::all_codes()) {
        known.emplace_back(info.code);
    }
    const std::string near = base::nearest_word(text, known);
    throw UsageError(fmt::format("{}: there is no code '{}'{}", option, text,
                                 near.empty() ? "; codes look like SP4003" : fmt::format("; did you mean {}?", near)));
}

/// "CODE=off|warning|error"; errors cannot be lowered, since what they report cannot be planned.
void parse_level(const std::string& text, ValidateArguments& validate) {
    const std::size_t equals = std::min(text.find('='), text.size());
    const diag::CodeInfo& info = parse_code("--warn", text.substr(0, equals));
    const std::string level = text.substr(std::min(equals + 1, text.size()));
    if (level != "off" && level != "warning" && level != "error") {
        throw UsageError(fmt::format("--warn takes CODE=off, CODE=warning or CODE=error, got '{}'", text));
    }
    if (info.severity == diag::Severity::error && level != "error") {
        throw UsageError(fmt::format("--warn {}: {} ({}) is always an error", text, info.code, info.title));
    }
    validate.levels[std::string(info.code)] = level == "off"       ? std::nullopt
                                              : level == "warning" ? std::optional(diag::Severity::warning)
                                                                   : std::optional(diag::Severity::error);
}

/// The raw words of options that need more than CLI11's conversions.
struct Raw {
    std::optional<std::string> mesh, mode, layers, ranks, rank, seed, steps, repeat, generate, prompt_lengths, threads;
    std::optional<std::string> output, shards;
    std::string colour = "auto";
    std::vector<std::string> formats, levels;
    bool no_verify = false;
};

void add_output_options(CLI::App& command, Arguments& arguments, Raw& raw, const std::string& formats) {
    command.add_option("--format", raw.formats, formats + ", optionally with =FILE (repeatable)")
        ->allow_extra_args(false);
    command.add_option("-o,--output", raw.output, "Write the result to FILE instead of standard output");
    command.add_option("--color", raw.colour, "always, never or auto")->take_last();
    command.add_flag("--ascii", arguments.ascii, "No characters beyond ASCII");
    command.add_flag("-q,--quiet", arguments.quiet, "Errors only");
}

void add_overrides(CLI::App& command, Arguments& arguments, Raw& raw) {
    command.add_option("--mesh", raw.mesh, "Mesh instead of the job's: dp=2,tp=4 (one size may be -1)");
    command.add_option("--mode", raw.mode, "prefill, decode or insert");
    command.add_option("--set", arguments.overrides.set, "Change the job: --set workload.batch_size=8 (repeatable)")
        ->allow_extra_args(false);
    command.add_option("--layers", raw.layers, "Only the first N layers of the model");
}

void add_job_options(CLI::App& command, Arguments& arguments, Raw& raw) {
    command
        .add_option("job", arguments.job, "Job file, or a Hugging Face config.json with --mesh; - reads standard input")
        ->required();
    add_overrides(command, arguments, raw);
    add_output_options(command, arguments, raw, "text or json");
}

void add_plan(CLI::App& app, Arguments& arguments, Raw& raw) {
    CLI::App* plan = app.add_subcommand("plan", "Print where every tensor lies and what every step moves");
    add_job_options(*plan, arguments, raw);
    plan->add_option("--ranks", raw.ranks, "Number of devices: fills a -1 of the mesh, else must be its size");
    plan->add_option("--rank", raw.rank, "List the index ranges that rank R holds");
    plan->add_option("--shards", raw.shards, "Draw which devices hold which part of a tensor");
}

void add_run(CLI::App& app, Arguments& arguments, Raw& raw) {
    CLI::App* run = app.add_subcommand("run", "Run the plan on MPI ranks and compare it with the unsharded model");
    add_job_options(*run, arguments, raw);
    run->add_option("--ranks", raw.ranks, "Start mpirun with N ranks (default: the devices of the mesh)");
    run->add_option("--kernels", arguments.kernels, "onednn or reference");
    run->add_option("--seed", raw.seed, "Seed of weights and tokens (default 0)");
    run->add_option("--steps", raw.steps,
                    "decode, insert: measured steps after the prompt, for which the cache must have room; prefill: "
                    "runs (default 4)");
    run->add_option("--repeat", raw.repeat,
                    "Only measure: N passes after one to warm up, compared with nothing; decode: without the prompt");
    run->add_option("--generate", raw.generate,
                    "Decode: generate N tokens greedily after a prompt of workload.sequence_length tokens");
    run->add_option("--prompt-lengths", raw.prompt_lengths,
                    "Decode, insert: tokens of each sequence's prompt, e.g. 5,9; none longer than "
                    "workload.sequence_length; the cache needs room for the longest");
    run->add_option("--tokens", arguments.tokens, "Token ids from a JSON file, [batch][tokens of cache and steps]");
    run->add_option("--weights", arguments.weights, "Weights from a safetensors file, index or directory");
    run->add_option("--save-weights", arguments.save_weights, "Write the weights in use to DIR/model.safetensors");
    run->add_option("--logits", arguments.logits, "Write the logits (f32) to a safetensors file");
    run->add_option("--trace", arguments.trace, "Write when each rank ran which step to a Chrome trace (JSON)");
    run->add_flag("--verify,!--no-verify", arguments.verify, "Compare with the unsharded model (default on)");
    run->add_option("--threads", raw.threads, "Threads of each rank (default: cores / ranks of this host)");
}

void add_validate(CLI::App& app, Arguments& arguments, Raw& raw) {
    CLI::App* command = app.add_subcommand("validate", "Check jobs and report every problem with its place");
    ValidateArguments& validate = arguments.validate;
    command->add_option("files", validate.files,
                        "Job files, directories (every job below), - for standard input, or configs of models with "
                        "--mesh");
    command->add_option("--stdin-filename", validate.stdin_name, "What - is called, and where its paths begin");
    add_overrides(*command, arguments, raw);
    command->add_option("--ranks", raw.ranks, "Number of devices: fills a -1 of the mesh, else must be its size");
    add_output_options(*command, arguments, raw, "text, json, github, sarif or junit");
    command->add_flag("--strict", validate.strict, "Warnings fail too");
    command->add_option("--warn", raw.levels, "CODE=off, CODE=warning or CODE=error (repeatable)")
        ->allow_extra_args(false);
    command->add_flag("--exit-zero", validate.exit_zero, "Exit with 0 even when there are findings");
    command->add_option("--explain", validate.explain, "Say what a code means");
}

void add_schema(CLI::App& app, Raw& raw) {
    CLI::App* command = app.add_subcommand("schema", "Print the JSON Schema of job files, for editors");
    command->add_option("-o,--output", raw.output, "Write it to FILE instead of standard output");
}

std::uint64_t parse_seed(const std::string& text) {
    return static_cast<std::uint64_t>(parse_count("--seed", text, 0, std::numeric_limits<std::int64_t>::max()));
}

void convert_outputs(Arguments& arguments, const Raw& raw) {
    for (const std::string& format : raw.formats) {
        arguments.outputs.push_back(parse_output(format, arguments.command == Command::validate));
    }
    if (arguments.outputs.empty()) {
        arguments.outputs.push_back({});
    }
    if (raw.output) {
        const auto open = std::find_if(arguments.outputs.begin(), arguments.outputs.end(),
                                       [](const Output& output) { return output.file.empty(); });
        if (raw.output->empty() || open == arguments.outputs.end()) {
            throw UsageError(raw.output->empty() ? "-o: the name of the file is empty"
                                                 : "-o: every --format has a file of its own already");
        }
        open->file = file_or_standard(*raw.output);
    }
    for (std::size_t i = 0; i < arguments.outputs.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            const std::string& one = arguments.outputs[j].file;
            const std::string& other = arguments.outputs[i].file;
            if (!one.empty() && !other.empty() && base::same_place(one, other)) {
                throw UsageError(fmt::format("two formats for one file, '{}'", other));
            }
        }
    }
    const auto to_standard_output = std::count_if(arguments.outputs.begin(), arguments.outputs.end(),
                                                  [](const Output& output) { return output.file.empty(); });
    if (to_standard_output > 1) {
        throw UsageError("only one --format can go to standard output; give the others a file, as in json=FILE");
    }
}

void convert_validate(Arguments& arguments, const Raw& raw) {
    ValidateArguments& validate = arguments.validate;
    for (const std::string& level : raw.levels) {
        parse_level(level, validate);
    }
    if (!validate.explain.empty()) {
        parse_code("--explain", validate.explain);
        if (!validate.files.empty()) {
            throw UsageError("--explain says what a code means and takes no files");
        }
    } else if (validate.files.empty()) {
        throw UsageError("validate needs files, directories, or - for standard input");
    }
}

void convert_generate(Arguments& arguments, const Raw& raw) {
    if (raw.generate) {
        arguments.overrides.generate = parse_count("--generate", *raw.generate, 1, 100'000);
        if (raw.steps) {
            throw UsageError("--generate says how many steps there are: leave --steps out");
        }
        if (arguments.overrides.mode && *arguments.overrides.mode != "decode") {
            throw UsageError(fmt::format("--generate decodes: leave --mode {} out", *arguments.overrides.mode));
        }
        arguments.steps = *arguments.overrides.generate;
    }
    std::string_view lengths = raw.prompt_lengths ? std::string_view(*raw.prompt_lengths) : std::string_view();
    while (raw.prompt_lengths) {
        const std::size_t comma = std::min(lengths.find(','), lengths.size());
        arguments.prompt_lengths.push_back(
            parse_count("--prompt-lengths", std::string(lengths.substr(0, comma)), 0, std::int64_t{1} << 40));
        if (comma == lengths.size()) {
            break;
        }
        lengths.remove_prefix(comma + 1);
    }
    if (raw.prompt_lengths) {
        arguments.overrides.longest_prompt =
            *std::max_element(arguments.prompt_lengths.begin(), arguments.prompt_lengths.end());
    }
}

void convert_repeat(Arguments& arguments, const Raw& raw) {
    if (!raw.repeat) {
        return;
    }
    if (raw.steps || raw.generate || raw.prompt_lengths || !arguments.logits.empty()) {
        throw UsageError("--repeat only measures one step: leave --steps, --generate, --prompt-lengths, --logits out");
    }
    arguments.repeat = parse_count("--repeat", *raw.repeat, 1, 100'000);
    arguments.steps = 1;
    arguments.verify = false;
}

void check_overrides(const Arguments& arguments, const Raw& raw) {
    if (raw.mesh && raw.mesh->empty()) {
        throw UsageError("--mesh takes axes as name=size, e.g. dp=2,tp=4, got ''");
    }
    for (const std::string& text : arguments.overrides.set) {
        if (!config::is_assignment(text)) {
            throw UsageError(fmt::format(
                "--set takes key.path=value, e.g. workload.batch_size=8: \"{}\" is not key.path=value", text));
        }
    }
}

void convert(Arguments& arguments, const Raw& raw) {
    check_overrides(arguments, raw);
    constexpr std::int64_t many = std::int64_t{1} << 40;
    if (raw.mesh) {
        arguments.overrides.mesh = raw.mesh;
    }
    if (raw.mode) {
        arguments.overrides.mode = raw.mode;
    }
    if (raw.layers) {
        arguments.overrides.layers = parse_count("--layers", *raw.layers, 1, 1'000'000);
    }
    if (raw.ranks) {
        arguments.ranks = parse_count("--ranks", *raw.ranks, 1, many);
        arguments.overrides.ranks = arguments.ranks;
        arguments.overrides.ranks_decide = arguments.command != Command::run;
    }
    if (raw.rank) {
        arguments.rank = parse_count("--rank", *raw.rank, 0, many);
    }
    if (raw.shards) {
        if (raw.shards->empty()) {
            throw UsageError("--shards takes the name of a tensor, got ''");
        }
        arguments.shards = *raw.shards;
    }
    if (raw.seed) {
        arguments.seed = parse_seed(*raw.seed);
    }
    if (raw.steps) {
        arguments.steps = parse_count("--steps", *raw.steps, 1, 100'000);
        arguments.steps_given = true;
    }
    convert_generate(arguments, raw);
    convert_repeat(arguments, raw);
    if (raw.threads) {
        arguments.threads = static_cast<int>(parse_count("--threads", *raw.threads, 1, 1024));
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
    convert_outputs(arguments, raw);
    if (arguments.command == Command::validate) {
        convert_validate(arguments, raw);
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
    add_validate(app, arguments, raw);
    add_schema(app, raw);
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
    const std::vector<std::pair<std::string, Command>> commands = {{"plan", Command::plan},
                                                                   {"run", Command::run},
                                                                   {"validate", Command::validate},
                                                                   {"schema", Command::schema},
                                                                   {"version", Command::version}};
    for (const auto& [name, command] : commands) {
        if (app.got_subcommand(name)) {
            arguments.command = command;
        }
    }
    convert(arguments, raw);
    return parsed;
}

}  // namespace shardplan::app
