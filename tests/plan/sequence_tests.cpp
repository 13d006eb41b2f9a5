// Attention over sequence axes: which way is taken at which sizes, and what each way moves and holds, by formula.
#include <sstream>

#include "base/checked.h"
#include "plan/planning.h"
#include "report/plan_json.h"
#include "report/plan_text.h"

namespace shardplan::plan {

using test::block_of;
using test::contains;
using test::JobText;
using test::plan_of;
using test::try_plan;

namespace {

constexpr std::int64_t head_dim = 8;

struct Sizes {
    std::int64_t n, heads, kv_heads;
    std::int64_t tokens = 64;
    std::int64_t window = 0;
    std::int64_t tp = 1;

    std::int64_t bytes(std::int64_t of_heads) const { return 2 * tokens * of_heads * head_dim * 4 / (n * tp); }
    std::int64_t query_bytes() const { return bytes(heads); }
    std::int64_t key_bytes() const { return bytes(kv_heads); }
};

/// A narrow MLP, so that attention is the peak.
JobText job_text(const Sizes& s, const std::string& options = "") {
    JobText text{.mesh = fmt::format(R"("sp": {}, "tp": {})", s.n, s.tp),
                 .axes = R"("weight_storage_axis": null, "hidden_state_axis": null)",
                 .workload = fmt::format(R"("batch_size": 2, "sequence_length": {})", s.tokens),
                 .options = options};
    text.model = fmt::format(R"("model_type": "mistral", "hidden_size": 64, "num_attention_heads": {},
        "num_hidden_layers": 2, "num_key_value_heads": {}, "head_dim": {}, "intermediate_size": 16,
        "sliding_window": {}, "tie_word_embeddings": false)",
                             s.heads, s.kv_heads, head_dim, s.window == 0 ? "null" : std::to_string(s.window));
    return text;
}

std::string fixed(CpCommType type) {
    return fmt::format(R"("cp_comm_type": "{}")", to_string(type));
}

/// What attention moves: queries, keys, values, and the output on its way back.
std::int64_t attention_bytes(const BlockPlan& block) {
    std::int64_t bytes = 0;
    for (const Step& step : block.steps) {
        if (step.collective &&
            (step.collective->reason == "for attention" || step.collective->reason == "round the ring of attention" ||
             block.values[static_cast<std::size_t>(step.collective->input)].name == "attention.output")) {
            bytes += step.times * step.collective->wire_bytes;
        }
    }
    return bytes;
}

/// n - 1 of n parts of the own block for each exchange, n - 1 blocks of keys and values for each of the others.
std::int64_t expected_bytes(const Sizes& s, CpCommType type) {
    const std::int64_t gathered = 2 * (s.n - 1) * s.key_bytes();
    if (type == CpCommType::p2p && s.window > 0) {
        return 2 * std::min(s.n - 1, base::ceil_div(s.window - 1, s.tokens / s.n)) * s.key_bytes();
    }
    if (type != CpCommType::a2a) {
        return gathered;
    }
    const bool keys_exchanged = s.kv_heads % (s.n * s.tp) == 0;
    return 2 * (s.n - 1) * s.query_bytes() / s.n + (keys_exchanged ? gathered / s.n : gathered);
}

const AttentionChoice::Way& way_of(const AttentionChoice& choice, CpCommType type) {
    return *std::find_if(choice.ways.begin(), choice.ways.end(), [&](const auto& way) { return way.type == type; });
}

constexpr CpCommType types[] = {CpCommType::all_gather, CpCommType::a2a, CpCommType::p2p};

}  // namespace

TEST_CASE("what each way moves, by formula") {
    for (const Sizes& s :
         {Sizes{2, 8, 8}, Sizes{2, 8, 1}, Sizes{4, 8, 8}, Sizes{4, 8, 4}, Sizes{4, 8, 2}, Sizes{8, 8, 8},
          Sizes{8, 8, 4}, Sizes{4, 8, 8, 64, 5}, Sizes{4, 8, 8, 64, 17}, Sizes{4, 8, 8, 64, 18}, Sizes{4, 8, 8, 64, 60},
          Sizes{2, 8, 8, 64, 0, 2}, Sizes{2, 8, 4, 64, 0, 4}, Sizes{2, 8, 2, 64, 0, 2}}) {
        CAPTURE(s.n);
        CAPTURE(s.kv_heads);
        CAPTURE(s.window);
        CAPTURE(s.tp);
        for (const CpCommType type : types) {
            CAPTURE(to_string(type));
            const Plan plan = plan_of(job_text(s, fixed(type)));
            const BlockPlan& block = plan.blocks[1];
            REQUIRE(block.attention.has_value());
            CHECK(block.attention->type == type);
            CHECK(block.attention->group_size == s.n);
            CHECK(attention_bytes(block) == expected_bytes(s, type));
            const AttentionChoice::Way& way = way_of(*block.attention, type);
            CHECK(way.peak_bytes == block.arena_bytes);
            CHECK(way.peak_bytes <= block.peak_activation_bytes + block.peak_communication_bytes);
            CHECK(way.wire_bytes >= attention_bytes(block));
        }
    }
}

TEST_CASE("auto takes the fewest bytes, then the least memory") {
    struct Row {
        Sizes sizes;
        CpCommType type;
        const char* reason;
    };
    const char* const bytes = "the fewest bytes on the wire";
    const char* const memory = "of the ways with the fewest bytes the one with the least memory";
    for (const Row& row : {Row{{4, 8, 8}, CpCommType::a2a, bytes},  // 4 (n-1)/n q against 2 (n-1) q
                           Row{{8, 8, 8}, CpCommType::a2a, bytes}, Row{{4, 8, 4}, CpCommType::a2a, bytes},
                           Row{{2, 8, 4}, CpCommType::p2p, memory},  // exchanging needs n > 1 + heads / kv_heads
                           Row{{4, 8, 2}, CpCommType::p2p, memory},  // too few kv heads to be exchanged
                           Row{{8, 8, 1}, CpCommType::p2p, memory},
                           Row{{4, 8, 8, 64, 5}, CpCommType::p2p, bytes},  // the window ends in the block before
                           Row{{4, 8, 8, 64, 40}, CpCommType::a2a, bytes}}) {
        CAPTURE(row.sizes.n);
        CAPTURE(row.sizes.kv_heads);
        CAPTURE(row.sizes.window);
        const Plan plan = plan_of(job_text(row.sizes));
        const AttentionChoice& choice = plan.blocks[1].attention.value();
        CHECK(to_string(choice.type) == to_string(row.type));
        CHECK(choice.reason == row.reason);
        CHECK(choice.axes == std::vector<std::string>{"sp"});
        const AttentionChoice::Way& taken = way_of(choice, choice.type);
        for (const AttentionChoice::Way& way : choice.ways) {
            CHECK(std::pair(taken.wire_bytes, taken.peak_bytes) <= std::pair(way.wire_bytes, way.peak_bytes));
        }
    }
}

TEST_CASE("a ring holds one block more, of keys or of values, and is a loop of any length") {
    for (const std::int64_t n : {2, 3, 4, 512}) {
        CAPTURE(n);
        const Sizes s{n, 8, 4, 2 * n};
        const Plan plan = plan_of(job_text(s, fixed(CpCommType::p2p)));
        const BlockPlan& block = plan.blocks[1];
        std::int64_t passes = 0;
        for (const Step& step : block.steps) {
            if (!step.collective) {
                continue;
            }
            REQUIRE(step.collective->kind == mesh::CollectiveKind::permute);
            CHECK(step.collective->shift == 1);
            CHECK(step.collective->payload_bytes == s.key_bytes());
            const bool in_place = step.collective->input == step.collective->output;
            CHECK(in_place == (step.loop != 0));
            CHECK(step.collective->staging_bytes == (in_place ? s.key_bytes() : 0));
            passes += step.times;
        }
        CHECK(passes == 2 * (n - 1));
        CHECK(std::ssize(block.steps) <= 40);
        CHECK(block.peak_communication_bytes == (n > 2 ? s.key_bytes() : 0));
        double flops = 0.0;
        for (const Step& step : block.steps) {
            const bool attention = step.compute && contains(std::string(to_string(step.compute->kind)), "attention");
            flops += attention ? static_cast<double>(step.times) * step.compute->flops : 0.0;
        }
        CHECK(flops == doctest::Approx(4.0 * 2.0 * 2.0 * 8.0 * 8.0 * static_cast<double>(s.tokens)));
    }
}

TEST_CASE("the ring needs the least memory, and device_memory can make it the choice") {
    const Sizes s{4, 8, 4, 256};
    const Plan free = plan_of(job_text(s));
    const Plan ring = plan_of(job_text(s, fixed(CpCommType::p2p)));
    CHECK(free.blocks[1].attention->type == CpCommType::a2a);
    REQUIRE(ring.memory.total() < free.memory.total());
    Job job = test::job_of(job_text(s));
    job.device_memory = ring.memory.total();
    diag::Diagnostics diagnostics;
    const auto plan = make_plan(job, diagnostics);
    REQUIRE(plan.has_value());
    CHECK(plan->blocks[1].attention->type == CpCommType::p2p);
    CHECK(contains(plan->blocks[1].attention->reason, "device_memory"));
    CHECK(plan->memory.total() == ring.memory.total());
    job.device_memory = ring.memory.total() - 1;
    CHECK_FALSE(make_plan(job, diagnostics).has_value());
}

TEST_CASE("the plan says which way was taken, and what the others cost") {
    const Plan plan = plan_of(job_text({4, 8, 8}, R"("context_parallel_load_balance": true)"));
    std::ostringstream text;
    report::write_plan_text(text, plan, {}, {}, {}, {});
    for (const char* part :
         {"attention over sp (4): Ulysses (a2a), the fewest bytes on the wire", "gathered (all_gather)", "ring (p2p)",
          "taken", "zig-zag: part i of 4 holds chunks i and 7-i of 8 of each sequence"}) {
        CHECK_MESSAGE(contains(text.str(), part), part);
    }
    std::ostringstream json;
    report::write_plan_json(json, plan_of(job_text({4, 8, 8, 64, 0, 4}, fixed(CpCommType::p2p))), {});
    for (const char* part : {R"("cp_comm_type": "p2p")", R"("reason": "options.cp_comm_type asks for it")",
                             R"("refused": "the 8 query heads would be cut over 16 devices)", R"("shift": 1)",
                             R"("key_shift": 2)", R"("times": 2)"}) {
        CHECK_MESSAGE(contains(json.str(), part), part);
    }
}

TEST_CASE("layers with other windows take other ways") {
    JobText text = job_text({4, 8, 8});
    text.model = R"("model_type": "gemma2", "hidden_size": 64, "num_attention_heads": 8, "num_hidden_layers": 2,
        "num_key_value_heads": 8, "head_dim": 8, "intermediate_size": 16, "sliding_window": 9)";
    const Plan plan = plan_of(text);
    std::vector<std::string> ways;
    for (const BlockPlan& block : plan.blocks) {
        if (block.attention) {
            ways.emplace_back(to_string(block.attention->type));
        }
    }
    CHECK(ways == std::vector<std::string>{"p2p", "a2a"});
}

TEST_CASE("without a shared axis, and in decode, there is no choice") {
    for (const char* axes : {R"("query_sequence_axis": null)", R"("key_sequence_axis": null)"}) {
        JobText text = job_text({4, 8, 8}, R"("context_parallel_load_balance": true)");
        text.axes += fmt::format(", {}", axes);
        const auto planned = try_plan(text);
        REQUIRE(planned.plan.has_value());
        CHECK_FALSE(planned.plan->blocks[1].attention.has_value());
        CHECK(planned.plan->token_order.plain());
        CHECK(planned.first("SP4021").pointer == "/options/context_parallel_load_balance");
    }
    JobText decode = job_text({4, 8, 8}, R"("context_parallel_load_balance": true, "cp_comm_type": "p2p")");
    decode.workload = R"("mode": "decode", "batch_size": 2, "sequence_length": 16)";
    const auto planned = try_plan(decode);
    REQUIRE(planned.plan.has_value());
    CHECK_FALSE(planned.plan->blocks[1].attention.has_value());
    CHECK(planned.plan->token_order.plain());
    CHECK(contains(fmt::format("{}", fmt::join(planned.plan->notes, "; ")), "concern prefill only"));
}

TEST_CASE("ways that are not possible are refused with what would do, or not offered") {
    const auto refused = try_plan(job_text({4, 8, 8, 64, 0, 4}, fixed(CpCommType::a2a)));
    CHECK_FALSE(refused.plan.has_value());
    const diag::Diagnostic& heads = refused.first("SP4020");
    CHECK(contains(heads.message, "8 query heads would be cut over 16 devices (4 for heads, 4 for the sequence)"));
    CHECK(contains(heads.hint, R"("all_gather", "p2p", or "auto"; "a2a" works over 1, 2 devices)"));
    const Plan automatic = plan_of(job_text({4, 8, 8, 64, 0, 4}));
    CHECK(contains(way_of(*automatic.blocks[1].attention, CpCommType::a2a).refusal, "16 devices"));

    JobText more = job_text({2, 8, 8}, fixed(CpCommType::p2p));
    more.mesh = R"("sp": 2, "cp": 2)";
    more.axes += R"(, "key_sequence_axis": ["sp", "cp"])";
    CHECK(contains(try_plan(more).first("SP4020").message, "ring over the keys' axes (sp, cp)"));

    JobText uneven = job_text({4, 8, 8, 12}, R"("context_parallel_load_balance": true)");
    const auto twelve = try_plan(uneven);
    CHECK_FALSE(twelve.plan.has_value());
    CHECK(contains(twelve.first("SP4020").message, "sequence_length 12 is not a multiple of 8"));
    CHECK(contains(twelve.first("SP4020").hint, "8 or 16"));
    uneven.options += R"(, "indivisible": "drop")";
    CHECK(contains(try_plan(uneven).first("SP4004").message, "keep their order"));
    CHECK(plan_of(uneven).token_order.plain());
}

}  // namespace shardplan::plan
