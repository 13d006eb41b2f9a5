// The keys of a job with their names, ranges, defaults and descriptions: one table that the reader checks against and
// the JSON Schema is written from. What the fields mean for a plan is not known here.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/provider.h"
#include "model/workload.h"
#include "partition/partition_axis.h"
#include "partition/rules.h"
#include "plan/job.h"
#include "tensor/dtype.h"

namespace shardplan::config {

struct JobField {
    std::string_view name;
    std::string_view description;
    std::string_view default_json;  ///< "" when the field has none
    std::string_view example_json;  ///< "" when the default is example enough
    std::int64_t lowest = 0;        ///< integers only
    std::int64_t highest = 0;
};

/// A name that a field may have, and what it stands for.
template <typename Value>
using Choice = std::pair<std::string_view, Value>;

namespace fields {

inline constexpr std::int64_t most_devices = std::int64_t{1} << 40;
inline constexpr std::int64_t most_tokens = std::int64_t{1} << 40;

inline constexpr std::size_t most_values = 250'000;  ///< of the whole job
inline constexpr std::size_t most_rules = 1000;
inline constexpr std::size_t longest_axis_name = 128;
inline constexpr std::int64_t most_stage_layers = 1'000'000;

inline constexpr JobField model = {
    "model",
    "The Hugging Face config of the model: a path relative to this file (a config.json or a directory that holds one), "
    "or the config itself.",
    "", R"("models/llama-3.1-8b.json")"};
inline constexpr JobField mesh = {"mesh", "The devices, arranged along named axes.", "",
                                  R"({"axes": {"dp": 1, "fsdp": 2, "tp": 4, "sp": 1}})"};
inline constexpr JobField partition_axis = {
    "partition_axis",
    "Which mesh axes each kind of dimension is cut over: null (not cut), one axis, or several from major to minor.",
    "{}", R"({"head_axis": "tp", "hidden_state_axis": null, "batch_axis": ["fsdp", "dp"]})"};
inline constexpr JobField partition_rules = {
    "partition_rules",
    "Where parameters lie: derived from the role of each weight, a table of an existing library, or rules of your own, "
    "[regular expression on the checkpoint name, [entry of each dimension]], the first match wins.",
    R"("derived")", R"([["lm_head", ["tp", null]], [".*", []]])"};
inline constexpr JobField backend = {
    "backend", "The provider of the modules that compute, and how experts do; a name or an object.", R"("auto")", ""};
inline constexpr JobField workload = {"workload", "What the model is asked to do in one step.", "{}",
                                      R"({"mode": "decode", "batch_size": 8, "sequence_length": 4095})"};
inline constexpr JobField options = {"options", "How strictly, and by whose rules, the job is planned.", "{}", ""};
inline constexpr JobField device_memory = {
    "device_memory",
    "Memory of a device: bytes, or text such as \"80GB\" (10^9) or \"79.5GiB\" "
    "(2^30). A list has one of these for each rank: shares "
    "are equal, so that the smallest decides. A plan that needs more is refused.",
    "",
    R"("80GB")",
    1,
    std::int64_t{1} << 60};
inline constexpr JobField pipeline = {
    "pipeline", "How layers are dealt out along a mesh axis. Not needed for even stages along an axis called pp.", "",
    R"({"axis": "pp", "layers": [9, 10, 10, 9]})"};
inline constexpr std::array job = {model,    mesh,    partition_axis, partition_rules, backend,
                                   workload, options, pipeline,       device_memory};

inline constexpr JobField pipeline_axis = {"axis", "The mesh axis whose coordinates are the stages.", R"("pp")", ""};
inline constexpr JobField pipeline_layers = {
    "layers", "Layers of each stage; they add up to the layers of the model. Default: even.", "", "[9, 10, 10, 9]"};
inline constexpr JobField account_for_embedding = {
    "account_for_embedding", "Even stages: the embedding counts as a layer of the first.", "false", ""};
inline constexpr JobField account_for_loss = {
    "account_for_loss", "Even stages: the output head counts as a layer of the last.", "false", ""};
inline constexpr JobField remainder = {
    "remainder", "Even stages that do not divide the layers: the first or the last ones get one more.", R"("first")",
    ""};
inline constexpr JobField virtual_stages = {"virtual_pipeline_model_parallel_size",
                                            "Megatron's interleaved stages, several runs of layers on each device. "
                                            "Only 1 is planned: a device holds one run of "
                                            "neighbouring layers.",
                                            "1",
                                            "1",
                                            1,
                                            most_stage_layers};
inline constexpr std::array pipeline_fields = {pipeline_axis,    pipeline_layers, account_for_embedding,
                                               account_for_loss, remainder,       virtual_stages};

inline constexpr JobField axes = {
    "axes", "Axis name to size, in order: the last axis varies fastest with the rank. One size may be -1.",
    "",     R"({"dp": 2, "tp": 4})",
    -1,     most_devices};
inline constexpr JobField devices = {
    "devices", "The number of devices; the axis sizes must multiply to it, and a size of -1 is filled from it.",
    "",        "8",
    1,         most_devices};
inline constexpr std::array mesh_fields = {axes, devices};

inline constexpr JobField provider = {
    "provider", "auto takes the best provider that can run this model on this mesh, and says why.", R"("auto")", ""};
inline constexpr JobField token_dispatcher = {
    "moe_token_dispatcher_type",
    "How tokens reach experts on other devices: allgather, every token goes to every device of expert_axis; alltoall, "
    "only to those that hold its experts; auto takes what moves fewer bytes.",
    R"("auto")", ""};
inline constexpr JobField grouped_gemm = {
    "moe_use_grouped_gemm",
    "One grouped product over the local experts instead of one after the other. Default: where the provider has it.",
    "", "true"};
inline constexpr JobField legacy_grouped_gemm = {
    "moe_use_legacy_grouped_gemm", "Megatron's older GroupedMLP; only with compat seed and the provider fused.",
    "false", ""};
inline constexpr JobField weight_dtype = {
    "weight_dtype",
    "int8: the provider inference keeps the weights of linears as 8 bit integers, with one f32 scale for each output "
    "channel of a device's part. Default: workload.dtype.",
    "", R"("int8")"};
inline constexpr std::array backend_fields = {provider, token_dispatcher, grouped_gemm, legacy_grouped_gemm,
                                              weight_dtype};

inline constexpr JobField mode = {"mode",
                                  "prefill: all tokens at once; decode: one token for each sequence; insert: "
                                  "insert_length tokens for each sequence, written into the cache behind those it "
                                  "holds.",
                                  R"("prefill")", ""};
inline constexpr JobField batch_size = {"batch_size", "Sequences over the whole mesh.", "1", "8", 1, most_tokens};
inline constexpr JobField sequence_length = {
    "sequence_length",
    "prefill: tokens of each sequence; decode, insert: tokens that the cache holds when the step starts.",
    "128",
    "4096",
    1,
    most_tokens};
inline constexpr JobField cache_length = {
    "cache_length",
    "Positions the key/value cache can hold; 0: none in prefill, chosen from sequence_length in decode and insert.",
    "0",
    "8192",
    0,
    most_tokens};
inline constexpr JobField dtype = {
    "dtype", "Of weights, activations and cache. Default: f32 when the model is stored so, else bf16.", "",
    R"("bf16")"};
inline constexpr JobField chunk_length = {"chunk_length",
                                          "Prefill in chunks of so many tokens, each attending to the cache that the "
                                          "ones before have filled; 0: all at once. "
                                          "It divides sequence_length.",
                                          "0",
                                          "512",
                                          0,
                                          most_tokens};
inline constexpr JobField insert_length = {
    "insert_length", "insert: tokens of each sequence that the step writes behind those in the cache.", "16", "32", 1,
    most_tokens};
inline constexpr JobField micro_batches = {
    "micro_batches",
    "Prefill over a pipeline: equal parts of the batch that go through the stages one behind the other.",
    "1",
    "4",
    1,
    most_tokens};
inline constexpr std::array workload_fields = {mode,         batch_size,    sequence_length, cache_length,
                                               chunk_length, insert_length, micro_batches,   dtype};

inline constexpr JobField indivisible = {
    "indivisible",
    "A dimension that its axes do not divide: strict, an error; drop, it is not cut, with a warning; pad, "
    "strict but for the vocabulary, which is padded to the next multiple of 128 * devices, as Megatron pads.",
    R"("strict")", ""};
inline constexpr JobField padded_vocab_size = {
    "padded_vocab_size",
    "Rows of embedding and output head, at least vocab_size; 0: vocab_size, or as indivisible has it.",
    "0",
    "51200",
    0,
    most_tokens};
inline constexpr JobField kv_heads = {
    "kv_heads",
    "Fewer key/value heads than devices: replicate, each is held by several; split, projections stay evenly cut and "
    "their outputs are gathered.",
    R"("replicate")", ""};
inline constexpr JobField compat = {
    "compat", "Whose fields and rules hold: seed, the 13 fields of EasyDeL 0.0.80; current, the fields of eformer.",
    R"("seed")", ""};
inline constexpr JobField cp_comm_type = {
    "cp_comm_type",
    "Attention where an axis cuts the sequence of queries and keys, by Megatron's names: p2p, a ring that passes keys "
    "and values on; a2a, heads exchanged for the sequence (Ulysses); all_gather, keys and values gathered; auto, the "
    "fewest bytes, then the least memory.",
    R"("auto")", ""};
inline constexpr JobField context_parallel_load_balance = {
    "context_parallel_load_balance",
    "Zig-zag: in prefill device i of the n of the query's sequence axes holds chunks i and 2n-1-i of 2n, so that all "
    "compute equally much causal attention.",
    "false", ""};
inline constexpr std::array options_fields = {indivisible, padded_vocab_size, kv_heads,
                                              compat,      cp_comm_type,      context_parallel_load_balance};

}  // namespace fields

namespace names {

inline constexpr auto rule_sources = std::to_array<Choice<partition::RuleSource>>({
    {"derived", partition::RuleSource::derived},
    {"seed-0.0.80", partition::RuleSource::seed_0_0_80},
    {"easydel-0.2", partition::RuleSource::easydel_0_2},
});
inline constexpr auto providers = std::to_array<Choice<backend::ProviderChoice>>({
    {"auto", backend::ProviderChoice::automatic},
    {"local", backend::ProviderChoice::local},
    {"fused", backend::ProviderChoice::fused},
    {"inference", backend::ProviderChoice::inference},
    {"transformer_engine", backend::ProviderChoice::fused},
    {"inference_optimized", backend::ProviderChoice::inference},
});
inline constexpr auto token_dispatchers = std::to_array<Choice<plan::TokenDispatcher>>({
    {"auto", plan::TokenDispatcher::automatic},
    {"allgather", plan::TokenDispatcher::all_gather},
    {"alltoall", plan::TokenDispatcher::all_to_all},
});
inline constexpr auto weight_dtypes = std::to_array<Choice<bool>>({{"int8", true}});
inline constexpr auto modes = std::to_array<Choice<model::Mode>>(
    {{"prefill", model::Mode::prefill}, {"decode", model::Mode::decode}, {"insert", model::Mode::insert}});
inline constexpr auto dtypes = std::to_array<Choice<tensor::DType>>({
    {"bf16", tensor::DType::bf16},
    {"f32", tensor::DType::f32},
    {"bfloat16", tensor::DType::bf16},
    {"float32", tensor::DType::f32},
    {"torch.bfloat16", tensor::DType::bf16},
    {"torch.float32", tensor::DType::f32},
});
inline constexpr auto indivisible = std::to_array<Choice<plan::Indivisible>>(
    {{"strict", plan::Indivisible::strict}, {"drop", plan::Indivisible::drop}, {"pad", plan::Indivisible::pad}});
inline constexpr auto remainders = std::to_array<Choice<bool>>({{"first", false}, {"last", true}});
inline constexpr auto kv_heads =
    std::to_array<Choice<plan::KvHeads>>({{"replicate", plan::KvHeads::replicate}, {"split", plan::KvHeads::split}});
inline constexpr auto cp_comm_types =
    std::to_array<Choice<plan::CpCommType>>({{"auto", plan::CpCommType::automatic},
                                             {"p2p", plan::CpCommType::p2p},
                                             {"a2a", plan::CpCommType::a2a},
                                             {"all_gather", plan::CpCommType::all_gather}});
inline constexpr auto compat = std::to_array<Choice<partition::Compat>>(
    {{"seed", partition::Compat::seed}, {"current", partition::Compat::current}});

}  // namespace names

/// The names of fields, for ObjectReader.
std::vector<std::string> keys_of(std::span<const JobField> fields);

}  // namespace shardplan::config
