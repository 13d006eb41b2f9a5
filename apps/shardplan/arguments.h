// What the command line says, as plain values. CLI11 stays behind parse_arguments.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "config/overrides.h"
#include "diag/diagnostic.h"

namespace shardplan::app {

/// The command line cannot be used; the message names the option and what it takes. Exit code 2.
struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

enum class Command : std::uint8_t { plan, run, validate, schema, version };
enum class Format : std::uint8_t { text, json, github, sarif, junit };  ///< the last three: validate only
enum class Colour : std::uint8_t { automatic, always, never };

/// One rendering of the result; an empty file is standard output.
struct Output {
    Format format = Format::text;
    std::string file;
};

struct ValidateArguments {
    std::vector<std::string> files;  ///< files, directories, "-"
    std::string stdin_name = "<stdin>";
    /// --warn by code; nullopt = off.
    std::map<std::string, std::optional<diag::Severity>, std::less<>> levels;
    bool strict = false;
    bool exit_zero = false;
    std::string explain;  ///< a code of the table: say what it means, check nothing
};

struct Arguments {
    Command command = Command::plan;
    std::string program;  ///< argv[0]

    std::string job;  ///< path, or "-" for standard input
    config::Overrides overrides;
    std::vector<Output> outputs;
    Colour colour = Colour::automatic;
    bool ascii = false;
    bool quiet = false;

    // plan
    std::optional<std::int64_t> rank;  ///< list what this rank holds
    std::string shards;                ///< draw who holds this tensor

    // run
    std::optional<std::int64_t> ranks;  ///< start so many; default: the mesh of the job
    std::string kernels = "onednn";
    std::uint64_t seed = 0;
    std::int64_t steps = 4;
    std::vector<std::int64_t> prompt_lengths;
    bool steps_given = false;
    std::int64_t repeat = 0;  ///< of run --repeat: only measures; 0 = not given
    std::string tokens;
    std::string weights;
    std::string save_weights;
    std::string logits;
    std::string trace;
    bool verify = true;
    int threads = 0;

    ValidateArguments validate;
};

struct Parsed {
    Arguments arguments;
    std::optional<std::string> help;  ///< text to print instead of doing anything
};

/// Throws UsageError.
Parsed parse_arguments(int argc, const char* const* argv);

}  // namespace shardplan::app
