// The well-known schemes of parallelism come out of one lowering: which collectives each block has, and no others.
#include "plan/planning.h"

namespace shardplan::plan {

using test::block_of;
using test::JobText;
using test::moves;
using test::plan_of;

namespace {

struct Scheme {
    const char* name;
    JobText job;
    const char* embedding;
    const char* layer;
    const char* head;
};

const char* const neox =
    R"("model_type": "gpt_neox", "hidden_size": 64, "num_attention_heads": 8, "num_hidden_layers": 2, "intermediate_size": 96,
    "rotary_pct": 0.25, "use_parallel_residual": true, "tie_word_embeddings": false)";

constexpr const char* stationary =
    "all-reduce fsdp q.heads; all-reduce fsdp k.heads; all-reduce fsdp v.heads; all-gather fsdp "
    "attention_residual.out; "
    "all-reduce fsdp gate_proj.out; all-reduce fsdp up_proj.out; all-gather fsdp mlp_residual.out";
constexpr const char* gathered =
    "all-gather fsdp self_attn.q_proj.weight; all-gather fsdp self_attn.k_proj.weight; "
    "all-gather fsdp self_attn.v_proj.weight; all-gather fsdp self_attn.o_proj.weight; "
    "all-gather fsdp mlp.gate_proj.weight; all-gather fsdp mlp.up_proj.weight; all-gather fsdp mlp.down_proj.weight";
constexpr const char* sequence_parallel =
    "all-gather tp input_norm.out; reduce-scatter tp o_proj.out; all-gather tp pre_mlp_norm.out; "
    "reduce-scatter tp down_proj.out";
constexpr const char* replicated_hidden = R"("hidden_state_axis": null)";

const Scheme schemes[] = {
    {"data parallel", {.mesh = R"("dp": 2)"}, "", "", ""},
    {"Megatron tensor parallel",
     {.mesh = R"("tp": 4)", .axes = replicated_hidden},
     "all-reduce tp embedding.out",
     "all-reduce tp o_proj.out; all-reduce tp down_proj.out",
     ""},
    {"the same in decode",
     {.mesh = R"("tp": 4)",
      .axes = replicated_hidden,
      .workload = R"("mode": "decode", "batch_size": 2, "sequence_length": 16)"},
     "all-reduce tp embedding.out",
     "all-reduce tp o_proj.out; all-reduce tp down_proj.out",
     ""},
    {"tensor parallel over two axes, in the order of the field",
     {.mesh = R"("a": 2, "b": 2)", .axes = R"("hidden_state_axis": null, "batch_axis": null, "head_axis": ["b", "a"])"},
     "all-reduce a,b embedding.out",
     "all-reduce a,b o_proj.out; all-reduce a,b down_proj.out",
     ""},
    {"Megatron sequence parallel",
     {.mesh = R"("tp": 4)", .axes = R"("hidden_state_axis": null, "sequence_axis": "tp", "query_sequence_axis": null,
                 "key_sequence_axis": null)"},
     "all-gather tp token_ids; reduce-scatter tp embedding.out",
     sequence_parallel,
     "all-gather tp final_norm.out"},
    {"hidden states on tp, the seed's default",
     {.mesh = R"("tp": 4)"},
     "reduce-scatter tp embedding.out",
     "all-reduce tp input_norm.statistics; all-gather tp input_norm.out; reduce-scatter tp o_proj.out; "
     "all-reduce tp pre_mlp_norm.statistics; all-gather tp pre_mlp_norm.out; reduce-scatter tp down_proj.out",
     "all-reduce tp final_norm.statistics; all-gather tp final_norm.out"},
    {"parallel residual: one sum for both branches",
     {.mesh = R"("tp": 4)", .axes = replicated_hidden, .model = neox},
     "all-reduce tp embedding.out",
     "all-reduce tp branches.out",
     ""},
    {"fsdp with many tokens: weights are gathered before use",
     {.mesh = R"("fsdp": 4)", .workload = R"("batch_size": 64, "sequence_length": 64)"},
     "all-gather fsdp model.embed_tokens.weight",
     gathered,
     "all-gather fsdp lm_head.weight"},
    {"weights over fsdp with few tokens: they stay, activations move",
     {.mesh = R"("fsdp": 4)", .axes = R"("batch_axis": null)", .workload = R"("batch_size": 2, "sequence_length": 2)"},
     "all-gather fsdp embedding.out",
     stationary,
     "all-reduce fsdp lm_head.out"},
    {"sequence on sp: heads are exchanged for it (Ulysses), the fewest bytes",
     {.mesh = R"("sp": 4)", .axes = R"("weight_storage_axis": null)"},
     "",
     "all-to-all sp q.rotated; all-to-all sp k.rotated; all-to-all sp v.heads; all-to-all sp attention.output",
     ""},
    {"sequence on sp, keys and values gathered",
     {.mesh = R"("sp": 4)", .axes = R"("weight_storage_axis": null)", .options = R"("cp_comm_type": "all_gather")"},
     "",
     "all-gather sp k.rotated; all-gather sp v.heads",
     ""},
    {"sequence on sp, keys and values in a ring: one pass, then a loop",
     {.mesh = R"("sp": 4)", .axes = R"("weight_storage_axis": null)", .options = R"("cp_comm_type": "p2p")"},
     "",
     "permute sp k.rotated; permute sp v.heads; permute sp k.rotated.ring; permute sp v.heads.ring",
     ""},
    {"decode with keys on sp: partial softmaxes are merged",
     {.mesh = R"("sp": 4)",
      .axes = R"("weight_storage_axis": null)",
      .workload = R"("mode": "decode", "batch_size": 2, "sequence_length": 16)"},
     "",
     "all-reduce-max sp attention.max; all-reduce sp attention.rescaled; all-reduce sp attention.output",
     ""},
    {"vocabulary only",
     {.mesh = R"("x": 4)",
      .axes = R"("hidden_state_axis": null, "head_axis": null, "mlp_intermediate_axis": null, "vocab_axis": "x")"},
     "all-reduce x embedding.out",
     "",
     ""},
    {"more devices than kv heads, heads held twice",
     {.mesh = R"("tp": 8)", .axes = replicated_hidden},
     "all-reduce tp embedding.out",
     "all-reduce tp o_proj.out; all-reduce tp down_proj.out",
     ""},
    {"more devices than kv heads, projections cut evenly",
     {.mesh = R"("tp": 8)", .axes = replicated_hidden, .options = R"("kv_heads": "split")"},
     "all-reduce tp embedding.out",
     "all-gather tp:(4)2 k_proj.out; all-gather tp:(4)2 v_proj.out; all-reduce tp o_proj.out; "
     "all-reduce tp down_proj.out",
     ""},
    {"inference provider: tokens over tp in prefill",
     {.mesh = R"("tp": 4)", .axes = replicated_hidden, .backend = "inference"},
     "all-gather tp token_ids; reduce-scatter tp embedding.out",
     sequence_parallel,
     "all-gather tp final_norm.out"},
    {"inference provider: sequences over tp in decode",
     {.mesh = R"("tp": 4)",
      .axes = replicated_hidden,
      .workload = R"("mode": "decode", "batch_size": 4, "sequence_length": 16)",
      .backend = "inference"},
     "all-gather tp token_ids; reduce-scatter tp embedding.out",
     sequence_parallel,
     "all-gather tp final_norm.out"},
};

std::size_t step_count(const Plan& plan) {
    std::size_t count = 0;
    for (const BlockPlan& block : plan.blocks) {
        count += block.steps.size() * 1000 + block.values.size();
    }
    return count;
}

}  // namespace

TEST_CASE("the collectives of the well-known schemes") {
    for (const Scheme& scheme : schemes) {
        CAPTURE(scheme.name);
        const Plan plan = plan_of(scheme.job);
        CHECK(moves(block_of(plan, "embedding")) == scheme.embedding);
        CHECK(moves(block_of(plan, "layer")) == scheme.layer);
        CHECK(moves(block_of(plan, "head")) == scheme.head);
    }
}

TEST_CASE("what the schemes move") {
    // All-reduce of [2, 16, 64] f32 over 4: 2 * 3/4 of 8192 bytes, twice a layer and once for the embedding.
    const Plan megatron = plan_of({.mesh = R"("tp": 4)", .axes = replicated_hidden});
    REQUIRE(megatron.collectives.size() == 1);
    CHECK(megatron.collectives[0].count == 5);
    CHECK(megatron.collectives[0].payload_bytes == 5 * 8192);
    CHECK(megatron.collectives[0].wire_bytes == 5 * 12288);
    CHECK(megatron.collectives[0].wire_bytes_total == 4 * 5 * 12288);

    // Merged softmax over sp=4: [2, 1, 8] f32 maxima and sums, [2, 1, 64] f32 outputs.
    const Plan decode = plan_of({.mesh = R"("sp": 4)",
                                 .axes = R"("weight_storage_axis": null)",
                                 .workload = R"("mode": "decode", "batch_size": 2, "sequence_length": 16)"});
    REQUIRE(decode.collectives.size() == 2);
    CHECK(decode.collectives[0].payload_bytes == 2 * (64 + 512));
    CHECK(decode.collectives[1].payload_bytes == 2 * 64);
}

TEST_CASE("both ways to use a stored weight are counted") {
    const Plan many = plan_of({.mesh = R"("fsdp": 4)", .workload = R"("batch_size": 64, "sequence_length": 64)"});
    const Plan few = plan_of({.mesh = R"("fsdp": 4)",
                              .axes = R"("batch_axis": null)",
                              .workload = R"("batch_size": 2, "sequence_length": 2)"});
    for (const Plan* plan : {&many, &few}) {
        const auto& uses = block_of(*plan, "layer").weight_uses;
        std::vector<std::string> ops;
        for (const WeightUse& use : uses) {
            CAPTURE(use.op);
            CHECK(use.gathered == (plan == &many));
            CHECK(use.alternative_bytes >= use.chosen_bytes);
            ops.push_back(use.op);
        }
        for (const char* op : {"q_proj", "k_proj", "v_proj", "gate_proj", "up_proj"}) {
            CHECK_MESSAGE(std::count(ops.begin(), ops.end(), op) == 1, op);
        }
    }
}

TEST_CASE("peaks of small blocks, by hand") {
    const Plan one = plan_of({.mesh = R"("dp": 1)"});
    // lm_head: final_norm.out [2, 16, 64] and logits [2, 16, 128].
    CHECK(block_of(one, "head").peak_activation_bytes == 8192 + 16384);
    CHECK(block_of(one, "head").peak_communication_bytes == 0);
    // token ids and their rows.
    CHECK(block_of(one, "embedding").peak_activation_bytes == 128 + 8192);

    const Plan megatron = plan_of({.mesh = R"("tp": 4)", .axes = replicated_hidden});
    // The sum takes the place of the parts. Staging: as much as the value.
    CHECK(block_of(megatron, "embedding").peak_activation_bytes == 128 + 8192);
    CHECK(block_of(megatron, "embedding").peak_communication_bytes == 8192);
    // norm: input and output; then output and a quarter of the logits.
    CHECK(block_of(megatron, "head").peak_activation_bytes == 2 * 8192);

    const Plan hidden = plan_of({.mesh = R"("tp": 4)"});
    // lm_head: the gathered input and a quarter of the logits; gathering: staging for the output.
    CHECK(block_of(hidden, "head").peak_activation_bytes == 8192 + 4096);
    CHECK(block_of(hidden, "head").peak_communication_bytes == 8192);
}

TEST_CASE("memory of parameters and caches per device") {
    const Plan plan = plan_of({.mesh = R"("tp": 2, "sp": 2)",
                               .axes = R"("hidden_state_axis": null, "weight_storage_axis": null)",
                               .workload = R"("mode": "decode", "batch_size": 2, "sequence_length": 16)"});
    // 32 positions (17 rounded up to 16s), 4 kv heads of 8: cut over sp and tp. Two layers, keys and values.
    CHECK(plan.memory.cache == 2 * 2 * (2 * 32 * 4 * 8 * 4) / 4);
    const std::int64_t cut = 2 * 128 * 64 + 2 * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 96 * 64);
    CHECK(plan.memory.parameters == 4 * (cut / 2 + 5 * 64));
    CHECK(plan.totals.parameters == cut + 5 * 64);
}

TEST_CASE("plans do not grow with layers or devices") {
    const auto llama = [](int layers) {
        return fmt::format(
            R"("model_type": "llama", "hidden_size": 64, "num_attention_heads": 8, "num_hidden_layers": {}, "num_key_value_heads": 4,
            "intermediate_size": 96, "tie_word_embeddings": false)",
            layers);
    };
    const auto plan = [&](int layers, int devices) {
        return plan_of({.mesh = fmt::format(R"("dp": {}, "tp": 4)", devices),
                        .workload = R"("batch_size": 65536, "sequence_length": 16)",
                        .model = llama(layers)});
    };
    const Plan small = plan(1, 2);
    for (const auto& [layers, devices] : {std::pair{400, 2}, {1, 65536}, {400, 65536}}) {
        const Plan large = plan(layers, devices);
        CHECK(large.blocks.size() == small.blocks.size());
        CHECK(large.stored.size() == small.stored.size());
        CHECK(large.sequence.size() == static_cast<std::size_t>(layers) + 2);
        CHECK(step_count(large) == step_count(small));
    }
}

}  // namespace shardplan::plan
