#include "report/code_text.h"

#include <fmt/format.h>

#include <ostream>

#include "report/json_writer.h"
#include "report/schema_version.h"
#include "report/text_width.h"

namespace shardplan::report {

void write_code_text(std::ostream& out, const diag::CodeInfo& info, const Style& style) {
    out << paint(style, Paint::heading, fmt::format("{}: {}", info.code, info.title)) << " ("
        << diag::to_string(info.severity) << ")\n";
    for (const std::string_view text : {info.explanation, info.hint}) {
        for (const std::string& line : wrap(text, style.width)) {
            out << line << '\n';
        }
    }
    if (!info.source.empty()) {
        out << "From: " << info.source << '\n';
    }
}

void write_code_json(std::ostream& out, const diag::CodeInfo& info) {
    JsonWriter json(out);
    json.object([&] {
        json.field("schema_version", schema_version);
        json.field("code", info.code);
        json.field("severity", diag::to_string(info.severity));
        json.field("title", info.title);
        json.field("explanation", info.explanation);
        json.field("hint", info.hint);
        json.field("source", info.source);
    });
}

}  // namespace shardplan::report
