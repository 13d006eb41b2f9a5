#include "console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <system_error>

#include "base/output_path.h"
#include "comm/session.h"

namespace shardplan::app {
namespace {

bool is_set(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0';
}

/// mpirun gives rank 0 a pseudo-terminal as standard output, whatever its own is: no rank can know, so it says no.
bool is_terminal(Stream stream) {
    if (comm::launched_by_mpirun()) {
        return false;
    }
    const char* term = std::getenv("TERM");
    const bool dumb = term == nullptr || std::string_view(term) == "dumb";
    return stream != Stream::file && !dumb && isatty(stream == Stream::output ? STDOUT_FILENO : STDERR_FILENO) == 1;
}

bool wants_colour(Colour colour, Stream stream) {
    if (colour != Colour::automatic) {
        return colour == Colour::always;
    }
    if (is_set("NO_COLOR")) {
        return false;
    }
    return is_set("FORCE_COLOR") || is_set("CLICOLOR_FORCE") || is_terminal(stream);
}

bool utf8_locale() {
    for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
        if (is_set(name)) {
            const std::string_view value = std::getenv(name);
            return value.find("UTF-8") != std::string_view::npos || value.find("utf8") != std::string_view::npos;
        }
    }
    return false;
}

}  // namespace

report::Style style_for(const Arguments& arguments, Stream stream) {
    report::Style style;
    style.colour = wants_colour(arguments.colour, stream);
    style.ascii = arguments.ascii || (is_terminal(stream) && !utf8_locale());
    return style;
}

void refuse_overwriting(const std::vector<Output>& outputs, const std::vector<std::string>& inputs) {
    for (const Output& output : outputs) {
        for (const std::string& input : inputs) {
            std::error_code ignored;  // what is not there is not the same file
            if (!output.file.empty() && std::filesystem::is_regular_file(input, ignored) &&
                std::filesystem::equivalent(output.file, input, ignored)) {
                throw UsageError(fmt::format("cannot write '{}': it is the input '{}'", output.file, input));
            }
        }
    }
}

std::vector<std::string> files_of(const std::vector<config::Document>& documents) {
    std::vector<std::string> files;
    for (const config::Document& document : documents) {
        for (const config::Source& source : document.sources) {
            files.push_back(source.name);
        }
    }
    return files;
}

void write_output(const Output& output, const std::function<void(std::ostream&)>& write) {
    if (output.file.empty()) {
        write(std::cout);
        std::cout.flush();
        if (!std::cout) {
            throw UsageError("standard output could not be written");
        }
        return;
    }
    const base::OutputPath path = base::output_path(output.file, fmt::format(".tmp{}", getpid()));
    std::ofstream file(path.beside, std::ios::binary);
    if (file) {
        write(file);
        file.close();
    }
    if (!file || (path.renames() && std::rename(path.beside.c_str(), path.final.c_str()) != 0)) {
        const int reason = errno;
        if (path.renames()) {
            std::remove(path.beside.c_str());
        }
        throw UsageError(fmt::format("cannot write '{}': {}", output.file, std::strerror(reason)));
    }
}

report::Sources sources_of(const std::vector<config::Document>& documents) {
    report::Sources sources;
    for (const config::Document& document : documents) {
        for (const config::Source& source : document.sources) {
            sources.emplace(source.name, source.text);
        }
    }
    return sources;
}

void print_diagnostics(const diag::Diagnostics& diagnostics, const std::vector<config::Document>& documents,
                       const Arguments& arguments) {
    std::vector<diag::Diagnostic> shown;
    for (const diag::Diagnostic& diagnostic : diagnostics.all()) {
        const bool warning = diagnostic.severity == diag::Severity::warning;
        if (diagnostic.severity == diag::Severity::error || (warning && !arguments.quiet)) {
            shown.push_back(diagnostic);
        }
    }
    report::write_diagnostics_text(std::cerr, shown, sources_of(documents), style_for(arguments, Stream::error));
}

ExitCode code_for(const diag::Diagnostics& diagnostics) {
    bool errors = false;
    for (const diag::Diagnostic& diagnostic : diagnostics.all()) {
        if (diagnostic.severity != diag::Severity::error) {
            continue;
        }
        if (diagnostic.code == "SP1001" || diagnostic.code == "SP1002" || diagnostic.code == "SP1009") {
            return ExitCode::failure;
        }
        errors = true;
    }
    return errors ? ExitCode::findings : ExitCode::fine;
}

bool shows_progress() {
    return (is_terminal(Stream::error) || is_set(progress_variable)) && !is_set("CI");
}

}  // namespace shardplan::app
