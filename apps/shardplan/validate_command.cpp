#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "commands.h"
#include "console.h"
#include "diag/codes.h"
#include "job_files.h"
#include "planned_job.h"
#include "report/code_text.h"
#include "report/github_format.h"
#include "report/junit.h"
#include "report/sarif.h"

namespace shardplan::app {
namespace {

using diag::Severity;

/// --warn and -q: what is left of the findings. Errors always are.
void apply_levels(std::vector<diag::Diagnostic>& findings, const ValidateArguments& options, bool quiet) {
    const auto is_off = [&](diag::Diagnostic& finding) {
        if (finding.severity == Severity::error) {
            return false;
        }
        const auto level = options.levels.find(finding.code);
        if (level != options.levels.end()) {
            if (!level->second) {
                return true;
            }
            finding.severity = *level->second;
        }
        return quiet && finding.severity != Severity::error && !options.strict;
    };
    std::erase_if(findings, is_off);
}

class Validation {
public:
    explicit Validation(const Arguments& arguments) : arguments_(arguments), options_(arguments.validate) {
        report_.strict = options_.strict;
        report_.root = std::filesystem::current_path().string();
    }

    ExitCode run() {
        JobFiles files = find_jobs(options_.files, arguments_.overrides.mesh.has_value());
        report_.skipped = std::move(files.skipped);
        for (const UnreadableDirectory& directory : files.unreadable) {
            add_unreadable(directory);
        }
        for (const std::string& file : files.jobs) {
            check(file);
        }
        tell_skipped();
        if (files.jobs.empty() && files.unreadable.empty()) {
            throw UsageError("no job was found");
        }
        refuse_overwriting(arguments_.outputs, inputs_);
        for (const Output& output : arguments_.outputs) {
            write(output);
        }
        return exit_code();
    }

private:
    void add_unreadable(const UnreadableDirectory& directory) {
        diag::Diagnostics found;
        found.report("SP1001", fmt::format("cannot read directory '{}': {}", directory.name, directory.reason));
        found.all().front().span = diag::SourceSpan{directory.name, 1, 1, 1, 1};
        report_.files.push_back({directory.name, std::move(found.all())});
        unreadable_ = true;
    }

    void check(const std::string& file) {
        PlannedJob planned;
        const std::string shown = file == "-" ? options_.stdin_name : file;
        auto source = config::open_job(file, planned.diagnostics, options_.stdin_name);
        if (source) {
            if (file == "-") {
                source->directory = std::filesystem::path(options_.stdin_name).parent_path().string();
            }
            planned = check_job(*source, arguments_.overrides);
        } else {
            unreadable_ = true;
        }
        for (const std::string& input : files_of(planned.documents)) {
            inputs_.push_back(input);
        }
        inputs_.push_back(source ? source->name : shown);
        report::CheckedFile checked{source ? source->name : shown, std::move(planned.diagnostics.all())};
        for (diag::Diagnostic& finding : checked.findings) {
            if (!finding.span) {
                finding.span = diag::SourceSpan{checked.name, 1, 1, 1, 1};
            }
        }
        apply_levels(checked.findings, options_, arguments_.quiet);
        if (!checked.findings.empty()) {
            report_.sources.merge(sources_of(planned.documents));
            if (planned.documents.empty() && source) {  // the text is no JSON
                report_.sources.emplace(source->name, source->text);
            }
        }
        report_.files.push_back(std::move(checked));
    }

    void tell_skipped() const {
        if (arguments_.quiet) {
            return;
        }
        for (const report::SkippedFile& file : report_.skipped) {
            std::cerr << fmt::format("skipped {}: {}\n", file.name, file.reason);
        }
    }

    void write(const Output& output) const {
        const Stream stream = output.file.empty() ? Stream::output : Stream::file;
        write_output(output, [&](std::ostream& out) {
            switch (output.format) {
                case Format::text: write_text(out, style_for(arguments_, stream)); break;
                case Format::json: report::write_check_json(out, report_); break;
                case Format::github: report::write_check_github(out, without_notes()); break;
                case Format::sarif: report::write_check_sarif(out, without_notes(), SHARDPLAN_VERSION); break;
                case Format::junit: report::write_check_junit(out, without_notes()); break;
            }
        });
        if (output.file.empty() && output.format != Format::text && !arguments_.quiet) {
            std::cerr << report::check_summary(without_notes()) << '\n';
        }
    }

    void write_text(std::ostream& out, const report::Style& style) const {
        report::CheckReport shown = without_notes([](const diag::Diagnostic& d) { return is_of_model(d); });
        if (!arguments_.quiet || !report::sorted_findings(shown).empty()) {
            report::write_check_text(out, shown, style);
        }
    }

    /// Notes on the model: what of it is planned, and what was assumed.
    static bool is_of_model(const diag::Diagnostic& d) { return d.code == "SP2004" && d.pointer == "/model"; }

    /// Notes say how a job was understood: JSON has them all, text those that `kept` holds for, other formats none.
    template <typename Kept>
    report::CheckReport without_notes(Kept kept) const {
        report::CheckReport shown = report_;
        for (report::CheckedFile& file : shown.files) {
            std::erase_if(file.findings,
                          [&](const diag::Diagnostic& d) { return d.severity == Severity::note && !kept(d); });
        }
        return shown;
    }
    report::CheckReport without_notes() const {
        return without_notes([](const diag::Diagnostic&) { return false; });
    }

    ExitCode exit_code() const {
        if (unreadable_) {
            return ExitCode::failure;
        }
        const bool failing =
            std::any_of(report_.files.begin(), report_.files.end(), [&](const report::CheckedFile& file) {
                return std::any_of(file.findings.begin(), file.findings.end(),
                                   [&](const diag::Diagnostic& d) { return report::fails(report_, d); });
            });
        return failing && !options_.exit_zero ? ExitCode::findings : ExitCode::fine;
    }

    const Arguments& arguments_;
    const ValidateArguments& options_;
    report::CheckReport report_;
    std::vector<std::string> inputs_;  ///< files that were read
    bool unreadable_ = false;
};

ExitCode explain(const Arguments& arguments) {
    const diag::CodeInfo* info = diag::find_code(arguments.validate.explain);
    const Output& output = arguments.outputs.front();
    write_output(output, [&](std::ostream& out) {
        if (output.format == Format::json) {
            report::write_code_json(out, *info);
        } else {
            report::write_code_text(out, *info,
                                    style_for(arguments, output.file.empty() ? Stream::output : Stream::file));
        }
    });
    return ExitCode::fine;
}

}  // namespace

ExitCode validate_command(const Arguments& arguments) {
    return arguments.validate.explain.empty() ? Validation(arguments).run() : explain(arguments);
}

}  // namespace shardplan::app
