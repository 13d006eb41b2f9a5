// EasyDeL 0.0.80: its PartitionAxis and the specs its attention composes from it, as recorded from its own methods.
#include "partition/attention_specs.h"
#include "partition/golden.h"

using namespace shardplan::partition;

namespace {

SpecEntry read_entry(const nlohmann::ordered_json& value) {
    if (value.is_null()) {
        return {};
    }
    return value.is_string() ? SpecEntry{value.get<std::string>()} : value.get<SpecEntry>();
}

/// The axes with which the "custom" cases were recorded; every field differs from its default or from its neighbours.
PartitionAxis custom_axis() {
    PartitionAxis axis(Compat::seed);
    axis.set("batch_axis", {"dp"}, "");
    axis.set("query_sequence_axis", {}, "");
    axis.set("head_axis", {"tp", "sp"}, "");
    axis.set("key_sequence_axis", {}, "");
    axis.set("bias_head_sequence_axis", {"tp"}, "");
    axis.set("bias_key_sequence_axis", {"sp"}, "");
    axis.set("generation_query_sequence_axis", {"sp"}, "");
    axis.set("generation_head_axis", {}, "");
    axis.set("generation_key_sequence_axis", {"fsdp", "sp"}, "");
    axis.set("generation_attention_dim_axis", {"tp"}, "");
    return axis;
}

}  // namespace

TEST_CASE("the 13 fields of the seed, their order and defaults") {
    const auto golden = read_golden("golden_seed_era.json")["fields"];
    const auto fields = PartitionAxis::fields(Compat::seed);
    REQUIRE(golden.size() == 13);
    REQUIRE(fields.size() == 13 + 5);
    const PartitionAxis axis(Compat::seed);
    for (std::size_t i = 0; i < golden.size(); ++i) {
        const std::string name = golden[i][0];
        CAPTURE(name);
        CHECK(fields[i].name == name);
        CHECK(axis.value(name).axes == read_entry(golden[i][1]));
        CHECK(nlohmann::ordered_json::parse(fields[i].default_text) == golden[i][1]);
    }
}

TEST_CASE("the specs of an attention") {
    int cases = 0;
    const auto record = read_golden("golden_seed_era.json");
    for (const auto& [title, golden] : record.items()) {
        if (title == "fields") {
            continue;
        }
        CAPTURE(title);
        const auto has = [&](const char* text) { return title.find(text) != title.npos; };
        const PartitionAxis axis = has("custom") ? custom_axis() : PartitionAxis(Compat::seed);
        const Phase phase = has("qlen=1 ") ? Phase::decode : Phase::prefill;
        CHECK((phase == Phase::decode) == (golden["generating"] == "True"));
        const AttentionLayout layout = has("bhsd") ? AttentionLayout::bhsd : AttentionLayout::bshd;
        const AttentionSpecs specs = attention_specs(axis, phase, layout, has("bias_dim_eql=True"));
        CHECK(to_string(specs.query) == without_blanks(golden["q"]));
        CHECK(to_string(specs.key) == without_blanks(golden["k"]));
        CHECK(to_string(specs.value) == without_blanks(golden["v"]));
        CHECK(to_string(specs.bias) == without_blanks(golden["bias"]));
        CHECK(to_string(specs.output) == without_blanks(golden["out"]));
        ++cases;
    }
    CHECK(cases == 16);
}
