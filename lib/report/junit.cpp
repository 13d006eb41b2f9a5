#include "report/junit.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <sstream>

#include "report/escapes.h"

namespace shardplan::report {
namespace {

/// The findings of one file that fail, or those that do not, as text without source lines.
std::string listed(const CheckReport& report, const CheckedFile& file, bool failing) {
    std::ostringstream text;
    for (const diag::Diagnostic& diagnostic : file.findings) {
        if (fails(report, diagnostic) == failing) {
            write_diagnostic_text(text, diagnostic, {}, {});
        }
    }
    return text.str();
}

void write_case(std::ostream& out, const CheckReport& report, const CheckedFile& file) {
    const std::string name = portable_name(file.name, report.root);
    out << fmt::format("    <testcase name=\"{0}\" classname=\"shardplan.validate\" file=\"{0}\">\n",
                       xml_attribute(name));
    const auto first = std::find_if(file.findings.begin(), file.findings.end(),
                                    [&](const diag::Diagnostic& d) { return fails(report, d); });
    if (first != file.findings.end()) {
        out << fmt::format("      <failure type=\"{}\" message=\"{}\">{}</failure>\n", xml_attribute(first->code),
                           xml_attribute(first->message), xml_text(listed(report, file, true)));
    }
    if (const std::string rest = listed(report, file, false); !rest.empty()) {
        out << fmt::format("      <system-out>{}</system-out>\n", xml_text(rest));
    }
    out << "    </testcase>\n";
}

}  // namespace

void write_check_junit(std::ostream& out, const CheckReport& report) {
    const auto failures = std::count_if(report.files.begin(), report.files.end(), [&](const CheckedFile& file) {
        return std::any_of(file.findings.begin(), file.findings.end(),
                           [&](const diag::Diagnostic& d) { return fails(report, d); });
    });
    const std::string counts =
        fmt::format("name=\"shardplan validate\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"0\"",
                    report.files.size(), failures);
    out << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        << fmt::format("<testsuites {}>\n  <testsuite {}>\n", counts, counts);
    for (const CheckedFile& file : report.files) {
        write_case(out, report, file);
    }
    out << "  </testsuite>\n</testsuites>\n";
}

}  // namespace shardplan::report
