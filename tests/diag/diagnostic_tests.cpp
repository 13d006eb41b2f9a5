#include "diag/diagnostic.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

using namespace shardplan::diag;

namespace {

/// RFC 6901, section 4: first "~1", then "~0".
std::string unescape(std::string text) {
    for (const auto& [from, to] : {std::pair{"~1", "/"}, std::pair{"~0", "~"}}) {
        for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + 1)) {
            text.replace(at, 2, to);
        }
    }
    return text;
}

}  // namespace

TEST_CASE("report takes the severity from the table of codes and keeps the order") {
    Diagnostics diagnostics;
    CHECK_FALSE(diagnostics.has_errors());
    diagnostics.report("SP2004", "a note", "/model");
    diagnostics.report("SP4004", "a warning");
    CHECK_FALSE(diagnostics.has_errors());
    diagnostics.report("SP3001", "an error", "/mesh/axes/dp", "a hint");
    diagnostics.report("SP0000", "a code that does not exist counts as an error");
    REQUIRE(diagnostics.all().size() == 4);
    CHECK(diagnostics.error_count() == 2);
    CHECK(diagnostics.has_errors());
    CHECK(diagnostics.all()[0].severity == Severity::note);
    CHECK(diagnostics.all()[0].pointer == "/model");
    CHECK(diagnostics.all()[1].severity == Severity::warning);
    CHECK(diagnostics.all()[1].pointer.empty());
    const Diagnostic& error = diagnostics.all()[2];
    CHECK(error.code == "SP3001");
    CHECK(error.message == "an error");
    CHECK(error.hint == "a hint");
    CHECK_FALSE(error.span.has_value());
    CHECK(diagnostics.all()[3].severity == Severity::error);
}

TEST_CASE("add keeps a severity that differs from the table") {
    Diagnostics diagnostics;
    diagnostics.add({"SP3001", Severity::warning, "downgraded", "", "", std::nullopt});
    CHECK_FALSE(diagnostics.has_errors());
}

TEST_CASE("severities have names") {
    CHECK(to_string(Severity::error) == "error");
    CHECK(to_string(Severity::warning) == "warning");
    CHECK(to_string(Severity::note) == "note");
}

TEST_CASE("escape_pointer") {
    CHECK(escape_pointer("").empty());
    CHECK(escape_pointer("batch_axis") == "batch_axis");
    CHECK(escape_pointer("a/b") == "a~1b");
    CHECK(escape_pointer("m~n") == "m~0n");
    CHECK(escape_pointer("~1/") == "~01~1");
    CHECK(escape_pointer(".*/kernel") == ".*~1kernel");
    CHECK(rc::check("reads back", [] {
        const auto token = *rc::gen::container<std::string>(rc::gen::element('~', '/', '0', '1', 'a'));
        const std::string escaped = escape_pointer(token);
        RC_ASSERT(escaped.find('/') == std::string::npos);
        RC_ASSERT(unescape(escaped) == token);
    }));
}
