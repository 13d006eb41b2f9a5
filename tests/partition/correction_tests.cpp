// What a correction reports, and what holds for every one.
#include "partition/correction.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>

using namespace shardplan;
using namespace shardplan::partition;

namespace {

const mesh::Mesh grid({{"dp", 2}, {"fsdp", 3}, {"tp", 4}, {"one", 1}});

void check_step(const CorrectionStep& step, CorrectionReason reason, int dim, std::int64_t size, const SpecEntry& axes,
                std::int64_t product, const std::string& missing) {
    CHECK(to_string(step.reason) == to_string(reason));
    CHECK(step.dim == dim);
    CHECK(step.size == size);
    CHECK(step.axes == axes);
    CHECK(step.product == product);
    CHECK(step.missing == missing);
}

}  // namespace

TEST_CASE("a correction says what it did, in order") {
    const Correction padded = correct_spec({{{"dp", "fsdp"}, {"tp", "nope"}}}, {8, 4, 5}, grid);
    REQUIRE(padded.steps.size() == 4);
    check_step(padded.steps[0], CorrectionReason::padded, 2, 5, {}, 0, "");
    check_step(padded.steps[1], CorrectionReason::not_divisible, 0, 8, {"dp", "fsdp"}, 6, "");
    check_step(padded.steps[2], CorrectionReason::missing_axis, 1, 4, {"tp", "nope"}, 0, "nope");
    check_step(padded.steps[3], CorrectionReason::unconstrained, -1, 0, {}, 0, "");
    CHECK(padded.spec == PartitionSpec{});

    const Correction cut = correct_spec({{{"tp"}, {"dp"}, {"fsdp"}}}, {8}, grid);
    REQUIRE(cut.steps.size() == 1);
    check_step(cut.steps[0], CorrectionReason::truncated, 1, 0, {"dp"}, 0, "");
    CHECK(to_string(cut.spec) == "P('tp',)");

    CHECK(correct_spec({{{"one", "tp"}, {}}}, {4, 7}, grid).steps.empty());
}

TEST_CASE("duplicates are an error, but not when correction has removed them") {
    const Correction twice = correct_spec({{{"tp", "dp"}, {"tp"}, {"dp"}}}, {8, 8, 8}, grid);
    CHECK(twice.error == CorrectionError::duplicate_axis);
    CHECK(twice.duplicates == std::vector<std::string>{"tp", "dp"});
    const Correction within = correct_spec({{{"dp", "dp"}}}, {8}, grid);
    CHECK(within.duplicates == std::vector<std::string>{"dp"});
    const Correction removed = correct_spec({{{"tp"}, {"tp"}}}, {8, 3}, grid);
    CHECK_FALSE(removed.error.has_value());
    CHECK(to_string(removed.spec) == "P('tp',None)");
}

TEST_CASE("a corrected spec fits, keeps entries whole and is left alone by a second correction") {
    CHECK(rc::check([] {
        const auto axis = rc::gen::element<std::string>("dp", "fsdp", "tp", "one", "nope");
        const auto entries =
            *rc::gen::resize(3, rc::gen::container<std::vector<SpecEntry>>(rc::gen::container<SpecEntry>(axis)));
        const auto shape =
            *rc::gen::resize(4, rc::gen::container<tensor::Shape>(rc::gen::inRange<std::int64_t>(0, 25)));
        const Correction first = correct_spec({entries}, shape, grid);
        for (std::size_t dim = 0; dim < first.spec.entries.size(); ++dim) {
            const SpecEntry& entry = first.spec.entries[dim];
            std::int64_t product = 1;
            for (const std::string& name : entry) {
                RC_ASSERT(grid.find(name).has_value());
                product *= grid.size(*grid.find(name));
            }
            RC_ASSERT(shape.at(dim) % product == 0);
            if (!entry.empty()) {
                RC_ASSERT(entry == entries.at(dim));
            }
        }
        const Correction second = correct_spec(first.spec, shape, grid);
        RC_ASSERT(second.spec == first.spec);
        RC_ASSERT(second.steps.empty());
    }));
}
