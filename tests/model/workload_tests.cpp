#include <doctest/doctest.h>

#include <string>

#include "model/model_cases.h"

namespace shardplan::model {
namespace {

Workload inserted(std::int64_t behind, std::int64_t tokens, std::int64_t cache) {
    Workload workload{Mode::insert, 1, behind, cache};
    workload.insert_length = tokens;
    return workload;
}

TEST_CASE("workloads that do not fit") {
    struct Row {
        const char* changes;
        Workload workload;
        const char* pointer;  ///< "" = fits
        const char* hint;
    };
    const char* const learned = R"({"model_type": "opt"})";  // 64 positions
    const Row rows[] = {
        {"{}", {Mode::prefill, 1, 128, 0}, "", ""},
        {"{}", {Mode::prefill, 0, 128, 0}, "/workload/batch_size", ""},
        {"{}", {Mode::prefill, 1, 0, 0}, "/workload/sequence_length", ""},
        {"{}", {Mode::prefill, 1, 128, -1}, "/workload/cache_length", ""},
        {"{}", {Mode::prefill, 1, std::int64_t{1} << 50, 0}, "/workload/sequence_length", ""},
        {"{}", {Mode::prefill, 1, 128, 127}, "/workload/cache_length", "128"},
        {"{}", {Mode::prefill, 1, 128, 128}, "", ""},
        {"{}", {Mode::decode, 1, 128, 128}, "/workload/cache_length", "129"},
        {"{}", {Mode::decode, 1, 128, 129}, "", ""},
        {"{}", inserted(120, 8, 128), "", ""},
        {"{}", inserted(121, 8, 128), "/workload/cache_length", "129"},
        {"{}", inserted(121, 0, 0), "/workload/insert_length", ""},
        {learned, inserted(56, 8, 0), "", ""},
        {learned, inserted(57, 8, 0), "/workload/sequence_length", "56 or less"},
        {learned, {Mode::prefill, 1, 64, 0}, "", ""},
        {learned, {Mode::prefill, 1, 65, 0}, "/workload/sequence_length", "64 or less"},
        {learned, {Mode::decode, 1, 63, 0}, "", ""},
        {learned, {Mode::decode, 1, 64, 0}, "/workload/sequence_length", "63 or less"},
    };
    for (const Row& row : rows) {
        CAPTURE(std::string(row.changes));
        CAPTURE(row.workload.sequence_length);
        CAPTURE(row.workload.cache_length);
        diag::Diagnostics diagnostics;
        check_workload(small_model(row.changes), row.workload, diagnostics);
        const std::string pointer = row.pointer;
        REQUIRE(diagnostics.all().size() == (pointer.empty() ? 0 : 1));
        if (!pointer.empty()) {
            CHECK(diagnostics.all()[0].code == "SP6002");
            CHECK(diagnostics.all()[0].pointer == pointer);
            CHECK(diagnostics.all()[0].hint.find(row.hint) != std::string::npos);
        }
    }
}

TEST_CASE("slots of the cache") {
    CHECK(Workload{Mode::prefill, 1, 20, 0}.cache_slots() == 0);
    CHECK(Workload{Mode::decode, 1, 15, 0}.cache_slots() == 16);
    CHECK(Workload{Mode::decode, 1, 16, 0}.cache_slots() == 32);
    CHECK(Workload{Mode::decode, 1, 16, 17}.cache_slots() == 17);
    CHECK(inserted(16, 16, 0).cache_slots() == 32);
    CHECK(inserted(17, 16, 0).cache_slots() == 48);
    Workload generation{Mode::decode, 1, 15, 0};
    generation.steps_ahead = 2;
    CHECK(generation.cache_slots() == 32);
}

}  // namespace
}  // namespace shardplan::model
