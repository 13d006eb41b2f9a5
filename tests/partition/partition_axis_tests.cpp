// Both dialects: order and defaults of the fields, what a phase reads, which fields follow others.
#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "partition/partition_axis.h"

using namespace shardplan::partition;

namespace {

std::string resolved(const PartitionAxis& axis, Semantic semantic, Phase phase) {
    return to_string(axis.resolve(semantic, phase).axes);
}

PartitionAxis with(Compat compat, const std::vector<std::pair<std::string, SpecEntry>>& fields) {
    PartitionAxis axis(compat);
    for (const auto& [name, entry] : fields) {
        axis.set(name, entry, "/partition_axis/" + name);
    }
    return axis;
}

std::vector<std::string> names(Compat compat) {
    std::vector<std::string> result;
    for (const FieldInfo& field : PartitionAxis::fields(compat)) {
        result.emplace_back(field.name);
    }
    return result;
}

constexpr Phase phases[] = {Phase::train, Phase::prefill, Phase::decode, Phase::insert};

}  // namespace

TEST_CASE("specs are written as JAX writes them") {
    CHECK(to_string(PartitionSpec{}) == "P()");
    CHECK(to_string(PartitionSpec{{{}}}) == "P(None,)");
    CHECK(to_string(PartitionSpec{{{"tp"}}}) == "P('tp',)");
    CHECK(to_string(PartitionSpec{{{"fsdp", "dp"}, {"sp"}, {}}}) == "P(('fsdp','dp'),'sp',None)");
}

TEST_CASE("fields of the current dialect in eformer's order") {
    const std::vector<std::string> expected = {"data_parallel_axis",
                                               "fully_sharded_data_parallel_axis",
                                               "tensor_parallel_axis",
                                               "sequence_parallel_axis",
                                               "expert_parallel_axis",
                                               "batch_axis",
                                               "sequence_axis",
                                               "query_sequence_axis",
                                               "head_axis",
                                               "kv_head_axis",
                                               "key_sequence_axis",
                                               "hidden_state_axis",
                                               "mlp_intermediate_axis",
                                               "vocab_axis",
                                               "expert_axis",
                                               "expert_gate_axis",
                                               "attention_dim_axis",
                                               "attention_kv_dim_axis",
                                               "bias_head_sequence_axis",
                                               "bias_key_sequence_axis",
                                               "decode_batch_axis",
                                               "decode_query_sequence_axis",
                                               "decode_head_axis",
                                               "decode_kv_head_axis",
                                               "decode_key_sequence_axis",
                                               "decode_attention_dim_axis",
                                               "decode_attention_kv_dim_axis",
                                               "weight_storage_axis"};
    CHECK(names(Compat::current) == expected);
}

TEST_CASE("every semantic by default: seed train, seed decode, current in all phases") {
    struct Row {
        Semantic semantic;
        const char* train;
        const char* decode;
        const char* current;
    };
    const Row rows[] = {
        {Semantic::batch, "('fsdp','dp')", "('fsdp','dp')", "('fsdp','dp')"},
        {Semantic::length, "'sp'", "'sp'", "'sp'"},
        {Semantic::query_length, "'sp'", "None", "'sp'"},
        {Semantic::kv_length, "'sp'", "'sp'", "'sp'"},
        {Semantic::embed, "'tp'", "'tp'", "'tp'"},
        {Semantic::head, "'tp'", "'tp'", "'tp'"},
        {Semantic::kv_head, "'tp'", "'tp'", "'tp'"},
        {Semantic::mlp_intermediate, "'tp'", "'tp'", "'tp'"},
        {Semantic::vocab, "'tp'", "'tp'", "'tp'"},
        {Semantic::expert, "'ep'", "'ep'", "'ep'"},
        {Semantic::expert_gate, "None", "None", "None"},
        {Semantic::head_dim, "None", "None", "None"},
        {Semantic::kv_head_dim, "None", "None", "None"},
        {Semantic::bias_head_seq, "None", "None", "None"},
        {Semantic::bias_kv_seq, "None", "None", "None"},
        {Semantic::weight_storage, "('fsdp','sp')", "('fsdp','sp')", "('fsdp','sp')"},
    };
    const PartitionAxis seed(Compat::seed);
    const PartitionAxis current(Compat::current);
    for (const Row& row : rows) {
        CAPTURE(row.semantic);
        CHECK(resolved(seed, row.semantic, Phase::train) == row.train);
        CHECK(resolved(seed, row.semantic, Phase::prefill) == row.train);
        CHECK(resolved(seed, row.semantic, Phase::decode) == row.decode);
        for (const Phase phase : phases) {
            CHECK(resolved(current, row.semantic, phase) == row.current);
            CHECK_FALSE(current.resolve(row.semantic, phase).given);
            CHECK_FALSE(seed.resolve(row.semantic, phase).given);
        }
    }
}

TEST_CASE("seed: extensions follow the heads, weights follow them as they are in train") {
    const PartitionAxis axis = with(Compat::seed, {{"head_axis", {"a", "b"}}, {"generation_head_axis", {}}});
    CHECK(resolved(axis, Semantic::kv_head, Phase::train) == "('a','b')");
    CHECK(resolved(axis, Semantic::kv_head, Phase::decode) == "None");
    for (const Semantic weight : {Semantic::mlp_intermediate, Semantic::vocab}) {
        CHECK(resolved(axis, weight, Phase::train) == "('a','b')");
        CHECK(resolved(axis, weight, Phase::decode) == "('a','b')");
    }
    const ResolvedEntry kv = axis.resolve(Semantic::kv_head, Phase::decode);
    CHECK(kv.given);
    CHECK(kv.field == "generation_head_axis");
    CHECK(kv.pointer == "/partition_axis/generation_head_axis");

    const PartitionAxis own = with(Compat::seed, {{"head_axis", {"a"}}, {"kv_head_axis", {}}, {"vocab_axis", {"v"}}});
    CHECK(resolved(own, Semantic::kv_head, Phase::train) == "None");
    CHECK(resolved(own, Semantic::kv_head, Phase::decode) == "None");
    CHECK(own.resolve(Semantic::kv_head, Phase::decode).field == "kv_head_axis");
    CHECK(resolved(own, Semantic::vocab, Phase::decode) == "'v'");
    CHECK(resolved(own, Semantic::mlp_intermediate, Phase::train) == "'a'");
}

TEST_CASE("seed: None in a generation field is replicated, and a train field leaves decode alone") {
    const PartitionAxis axis = with(Compat::seed, {{"generation_key_sequence_axis", {}}, {"head_axis", {"x"}}});
    CHECK(resolved(axis, Semantic::kv_length, Phase::decode) == "None");
    CHECK(resolved(axis, Semantic::kv_length, Phase::train) == "'sp'");
    CHECK(resolved(axis, Semantic::head, Phase::decode) == "'tp'");
    CHECK_FALSE(axis.resolve(Semantic::head, Phase::decode).given);
}

TEST_CASE("current: None in a decode field falls back to the train field") {
    const PartitionAxis axis =
        with(Compat::current, {{"decode_head_axis", {}}, {"decode_key_sequence_axis", {"dp"}}, {"head_axis", {"ep"}}});
    CHECK(resolved(axis, Semantic::head, Phase::decode) == "'ep'");
    CHECK(axis.resolve(Semantic::head, Phase::decode).field == "head_axis");
    CHECK(resolved(axis, Semantic::kv_length, Phase::decode) == "'dp'");
    CHECK(resolved(axis, Semantic::kv_length, Phase::insert) == "'dp'");
    CHECK(resolved(axis, Semantic::kv_length, Phase::prefill) == "'sp'");
    CHECK(resolved(axis, Semantic::kv_head, Phase::train) == "'tp'");
}

TEST_CASE("current: base names flow into the defaults") {
    const PartitionAxis axis =
        with(Compat::current, {{"sequence_parallel_axis", {"cp"}}, {"data_parallel_axis", {"data"}}});
    CHECK(resolved(axis, Semantic::length, Phase::train) == "'cp'");
    CHECK(resolved(axis, Semantic::kv_length, Phase::decode) == "'cp'");
    CHECK(resolved(axis, Semantic::batch, Phase::train) == "('fsdp','data')");
    CHECK(resolved(axis, Semantic::weight_storage, Phase::train) == "('fsdp','cp')");
    CHECK(axis.resolve(Semantic::length, Phase::train).given);
    CHECK(axis.resolve(Semantic::length, Phase::train).field == "sequence_parallel_axis");
    CHECK_FALSE(axis.resolve(Semantic::batch, Phase::train).given);
    const PartitionAxis both =
        with(Compat::current, {{"fully_sharded_data_parallel_axis", {"f"}}, {"data_parallel_axis", {"d"}}});
    CHECK(both.resolve(Semantic::batch, Phase::decode).given);
    CHECK(both.value("decode_batch_axis").axes == SpecEntry{"f", "d"});
}

TEST_CASE("a field of another dialect can not be set") {
    CHECK_THROWS_AS(with(Compat::seed, {{"decode_head_axis", {"tp"}}}), std::invalid_argument);
    CHECK_THROWS_AS(with(Compat::current, {{"generation_head_axis", {"tp"}}}), std::invalid_argument);
}
