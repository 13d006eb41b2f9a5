#include "diag/diagnostic.h"

#include <algorithm>
#include <utility>

#include "diag/codes.h"

namespace shardplan::diag {

std::string_view to_string(Severity severity) {
    switch (severity) {
        case Severity::error: return "error";
        case Severity::warning: return "warning";
        case Severity::note: return "note";
    }
    return "error";
}

void Diagnostics::add(Diagnostic diagnostic) {
    all_.push_back(std::move(diagnostic));
}

void Diagnostics::report(std::string_view code, std::string message, std::string pointer, std::string hint) {
    const CodeInfo* info = find_code(code);
    const Severity severity = info != nullptr ? info->severity : Severity::error;
    add({std::string(code), severity, std::move(message), std::move(pointer), std::move(hint), std::nullopt});
}

std::size_t Diagnostics::error_count() const {
    return static_cast<std::size_t>(
        std::count_if(all_.begin(), all_.end(), [](const Diagnostic& d) { return d.severity == Severity::error; }));
}

std::string escape_pointer(std::string_view token) {
    std::string result;
    for (const char c : token) {
        if (c == '~') {
            result += "~0";
        } else if (c == '/') {
            result += "~1";
        } else {
            result += c;
        }
    }
    return result;
}

}  // namespace shardplan::diag
