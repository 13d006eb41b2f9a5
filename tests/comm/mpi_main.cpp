// Runs the cases on all ranks at once, prints what rank 0 and the failing ranks have to say.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdio>
#include <sstream>
#include <string>

#include "support/mpi_world.h"

namespace {

shardplan::comm::World* the_world = nullptr;
int cases_run = 0;

/// Ends all ranks when a case is left early, and counts the cases: a filter that matches none must not look like
/// success.
struct EarlyExit : doctest::IReporter {
    explicit EarlyExit(const doctest::ContextOptions& /*options*/) {}
    void report_query(const doctest::QueryData& /*data*/) override {}
    void test_run_start() override {}
    void test_run_end(const doctest::TestRunStats& /*stats*/) override {}
    void test_case_start(const doctest::TestCaseData& data) override {
        name_ = data.m_name;
        ++cases_run;
    }
    void test_case_reenter(const doctest::TestCaseData& /*data*/) override {}
    void test_case_end(const doctest::CurrentTestCaseStats& /*stats*/) override {}
    void test_case_exception(const doctest::TestCaseException& exception) override {
        end_all(exception.error_string.c_str());
    }
    void subcase_start(const doctest::SubcaseSignature& /*signature*/) override {}
    void subcase_end() override {}
    void log_assert(const doctest::AssertData& data) override {
        if (data.m_failed && (data.m_at & doctest::assertType::is_require) != 0) {
            end_all(fmt::format("{}:{}: REQUIRE( {} ) is {}", data.m_file, data.m_line, data.m_expr,
                                data.m_threw ? data.m_exception.c_str() : data.m_decomp.c_str()));
        }
    }
    void log_message(const doctest::MessageData& /*data*/) override {}
    void test_case_skipped(const doctest::TestCaseData& /*data*/) override {}

private:
    [[noreturn]] void end_all(const std::string& reason) const {
        fmt::print(stderr, "rank {}, test case \"{}\": {}\n", the_world->rank(), name_, reason);
        shardplan::comm::Session::abort(1);
    }
    std::string name_;
};

REGISTER_LISTENER("early_exit", 1, EarlyExit);

}  // namespace

shardplan::comm::World& shardplan::test::mpi_world() {
    return *the_world;
}

int main(int argc, char** argv) {
    const shardplan::comm::Session session(argc, argv);
    const auto world = shardplan::comm::make_mpi_world();
    the_world = world.get();

    std::ostringstream output;
    doctest::Context context(argc, argv);
    context.setOption("no-colors", true);
    context.setCout(&output);
    bool passed = context.run() == 0;
    if (cases_run == 0 && !context.shouldExit()) {
        passed = false;
        output << "no test case was run\n";
    }

    const auto texts = world->gather(passed && world->rank() != 0 ? std::string() : output.str());
    for (std::size_t rank = 0; rank < texts.size(); ++rank) {
        if (!texts[rank].empty()) {
            fmt::print("--- rank {} of {}\n{}", rank, texts.size(), texts[rank]);
        }
    }
    return world->agree(passed) ? 0 : 1;
}
