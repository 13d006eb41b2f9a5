// The rows of diag/codes.h. docs/diagnostics.md is generated from them (scripts/generate_diagnostics).
#pragma once

#include <array>

#include "diag/codes.h"

namespace shardplan::diag {

// clang-format off
inline constexpr auto code_table = std::to_array<CodeInfo>({
    // ---- the file ----
    {"SP1001", Severity::error, "not readable",
     "The file, or the model's config that the job names, cannot be opened or read. Paths in a job are relative to the "
     "job's own directory.",
     "Check the path; for a model downloaded in part, fetch its config.json.", ""},
    {"SP1002", Severity::error, "JSON syntax",
     "The text is not one JSON document in UTF-8. Comments, trailing commas, unfilled placeholders of templates, Git "
     "LFS pointers, web pages saved as .json, and NaN or Infinity outside of a model are named as what they are.",
     "Correct the text at the place shown; nothing is repaired silently.", "RFC 8259"},
    {"SP1003", Severity::error, "duplicate key",
     "A key stands twice in one object. Most readers keep the last one without a word, so which value is meant is not "
     "clear.",
     "Keep one of the two.", "RFC 8259, section 4"},
    {"SP1004", Severity::error, "unknown key",
     "The job format has no such key. A misspelt field that is ignored would leave its default in force.",
     "Use the key that is suggested, or \"$comment\" for remarks.", ""},
    {"SP1005", Severity::error, "wrong type",
     "The value has another JSON type than the field needs. Text is not taken for a number, true not for 1, and a "
     "fraction is not cut off; 64.0 counts as 64. An entry of a PartitionSpec is null, a name or a flat list of names, "
     "as JAX has it.",
     "Write the value in the type that the message names.", "jax PartitionSpec; reports of silently converted configs"},
    {"SP1006", Severity::error, "value out of range",
     "The value is outside the range the field allows: sizes are at least 1, numbers finite, and nothing is larger than "
     "what 64-bit sizes can be computed from.",
     "Use a value within the range that the message gives.", "Megatron-Core argument checks (batch and layer counts)"},
    {"SP1007", Severity::error, "missing key",
     "A required key is absent and the family of the model has no default for it.",
     "Add the key; the message names the spellings that were looked for.", ""},
    {"SP1008", Severity::error, "unknown name",
     "The value is not one of the names the field allows; names are case-sensitive and the nearest is suggested.",
     "Use one of the names listed.", "Megatron-Core get_backend; transformers' activation and dtype names"},
    {"SP1009", Severity::error, "document too large",
     "The document is larger, nested deeper or has more values than the limits of the reader, which exist so that no "
     "file can exhaust memory or stack.",
     "Jobs and configs are small: check that this is the right file.", ""},

    {"SP1010", Severity::warning, "number of Python",
     "NaN, Infinity and -Infinity are no JSON, though Python's json module writes them. In the description of a model "
     "they are read, so that a field nobody needs does not stop the check; a field that is needed refuses them.",
     "Write a finite number or null: other readers refuse the whole file.", "configs with unlimited time steps"},

    {"SP1011", Severity::error, "not supported here",
     "The key or value is one that other systems have and this planner has not: training and its options, interleaved "
     "pipeline stages, a dtype for reductions, sizes of parallelism by their Megatron names ... It is refused rather than "
     "ignored, and the message says what holds instead.",
     "Do what the hint says, or remove the key.",
     "Megatron-Core arguments; reports of gpt-neox, TransformerEngine and others"},

    // ---- the model ----
    {"SP2001", Severity::error, "model type missing",
     "The model has no model_type, so the form of its layers and the names of its tensors are not known. Configs of "
     "other tools, with field names of their own, end here too.",
     "Give a Hugging Face config.json.", ""},
    {"SP2002", Severity::error, "unsupported model",
     "The model's family, or one of its features, is not supported: the message says which kind of layer is missing "
     "(experts, latent attention, state-space, encoder-decoder ...).",
     "Use a supported family; a guess would plan the wrong tensors.", ""},
    {"SP2003", Severity::error, "inconsistent model",
     "Two facts of the model contradict each other: query heads must be a multiple of key/value heads even on one "
     "device, the hidden size of the heads unless head_dim is given, lists must have one entry per layer.",
     "Correct the fact that is wrong; compare with the checkpoint's shapes.",
     "Megatron-Core TransformerConfig (heads, kv_channels, per-layer lists)"},
    {"SP2004", Severity::note, "default used",
     "A value was not given and a default took its place: an absent dtype, a cache length, an axis that is named only "
     "by a default and is not in the mesh.",
     "Nothing to do when the default is right; give the value to silence the note.", ""},
    {"SP2005", Severity::error, "size overflow",
     "A byte count or a sum over all devices does not fit in 64 bits. It is refused rather than computed modulo 2^64.",
     "Check the sizes of model, batch and mesh.", ""},
    {"SP2006", Severity::note, "unaligned head_dim",
     "head_dim is not a multiple of 8. This planner's kernels take any size, attention kernels elsewhere often do not.",
     "Check the kernels of the target system.", "reports: head size 100 of 3B models"},
    {"SP2007", Severity::warning, "assumption",
     "The config leaves open something that decides the plan, and the planner goes on with what is usual: the dtype is "
     "\"auto\", the vocabulary is left to the default of the configuration class, or the fields have the names of "
     "another tool, which does not write all that a Hugging Face config says.",
     "Give the value, or the model's own config.json.", "llm-analysis, MaxText and other collections of configs"},

    // ---- the mesh ----
    {"SP3001", Severity::error, "mesh shape",
     "An axis size, an axis name or the number of axes is not allowed. Sizes are at least 1, or -1 once; 0 and -2 are "
     "refused although numpy's reshape takes them; names are unique.",
     "Correct the axis; sizes computed by dividing a device count often become 0.", "eformer create_mesh; jax Mesh"},
    {"SP3002", Severity::error, "wildcard axis",
     "At most one axis may be -1, and the number of devices must be known and a multiple of the other axes' product.",
     "Give mesh.devices or write the size.", "eformer create_mesh (numpy reshape)"},
    {"SP3003", Severity::error, "device count",
     "The product of the axis sizes differs from the number of devices. JAX's make_mesh leaves further devices unused "
     "in silence; here the numbers must agree.",
     "Change one axis so that the product is the number of devices.", "jax make_mesh, create_device_mesh; Megatron-Core "
     "world size checks"},
    {"SP3004", Severity::warning, "unused mesh axis",
     "An axis of size greater than 1 cuts no tensor of this job. All devices along it hold the same memory and compute "
     "the same numbers.",
     "Name the axis in a field of partition_axis, or give its devices to another axis.", ""},
    {"SP3005", Severity::error, "pipeline stages",
     "Layers cannot be dealt out along the pipeline axis: a stage would have none, or the numbers given do not add up to "
     "the model's layers or stand beside options for even stages; or a field names the axis, which cuts no tensor. "
     "Stages may be unequal.",
     "Use fewer stages, or numbers that add up.", "Megatron-Core transformer_config, arguments (pipeline splits)"},
    {"SP3006", Severity::note, "unequal pipeline stages",
     "The layers, and what counts as one, are no multiple of the stages: some have one more, and all others wait for "
     "them. Megatron-Core refuses it unless the stages are given.",
     "Use a number of stages that divides the layers, or give pipeline.layers.",
     "Megatron-Core arguments, transformer_block (num_layers % pipeline_model_parallel_size)"},

    // ---- partitioning ----
    {"SP4001", Severity::error, "duplicate axis",
     "A mesh axis may cut at most one dimension of a tensor, and stand once in an entry, even if its size is 1. There "
     "is no repair: which of the two dimensions should keep the axis only the author knows. The attention bias counts "
     "when one of its fields is given.",
     "Give one of the two fields another axis or null.", "jax DuplicateSpecError; EasyDeL issue 128"},
    {"SP4002", Severity::error, "unknown axis",
     "A field or rule of the job names an axis that the mesh does not have. Defaults may name absent axes: these count "
     "as size 1.",
     "Add the axis with size 1, correct its name, or drop it; or set options.indivisible to \"drop\".",
     "jax NamedSharding; eformer drops the entry"},
    {"SP4003", Severity::error, "not divisible",
     "A dimension is not a multiple of the product of the sizes of its axes, so the shards would be unequal. Heads are "
     "never cut: attention is computed for whole heads on one device. A gated MLP divides by its logical width, not by "
     "the two halves together. Uneven shards are not supported.",
     "Use one of the sizes listed, the next batch or sequence that divides, or a padded vocabulary.",
     "jax pjit argument checks; Megatron-Core divide() and head checks; reports of vLLM, DeepSpeed, EasyDeL"},
    {"SP4004", Severity::warning, "entry dropped",
     "options.indivisible is \"drop\": an entry that does not divide, or that names an axis the mesh does not have, was "
     "replaced by None as a whole, as eformer does. The dimension is replicated.",
     "Use \"strict\" to make this an error.", "eformer get_corrected_named_sharding"},
    {"SP4005", Severity::error, "bad partition rule",
     "A partition rule cannot be used: its regular expression is not valid or too long, or the preset has no rules for "
     "this model type.",
     "Correct the pattern (ECMAScript, searched in the checkpoint's names), or use \"derived\".", ""},
    {"SP4006", Severity::warning, "unsharded parameters",
     "More than 2 % of the parameters are cut by no axis although the job cuts others: a rule did not match, or the "
     "field of a large dimension (vocabulary, MLP) has no axis.",
     "Look at the tensors named; give their dimension an axis.", "MaxText's tolerance for unsharded parameters"},
    {"SP4007", Severity::error, "key/value heads",
     "The key/value heads can neither be cut evenly over their devices nor be shared evenly by them: one number must "
     "be a multiple of the other. Megatron-Core before 0.16 also refused more devices than key/value heads.",
     "Use one of the sizes listed.", "Megatron-Core TransformerConfig (num_query_groups); vLLM"},
    {"SP4008", Severity::error, "rank of spec",
     "A PartitionSpec has more entries than the tensor has dimensions. It may be shorter: the dimensions at the end "
     "are then replicated.",
     "Remove entries, or make the pattern match only the tensors that are meant (biases have one dimension).",
     "jax NamedSharding"},
    {"SP4009", Severity::error, "quantisation group cut",
     "The weights are quantised in groups or blocks that share a scale, and the cut would fall inside a group: the "
     "width per device must be a multiple of the group.",
     "Use a number of devices that divides the number of groups, or pad the width.",
     "reports of vLLM, Qwen, sglang, mlx on AWQ, GPTQ and block-wise fp8"},
    {"SP4010", Severity::warning, "replicated activations",
     "A mesh axis stores weights but cuts no activation: its devices gather different weights only to compute on the "
     "same tokens.",
     "Add the axis to batch_axis, as fully sharded data parallelism means it.", "EasyDeL's batch_axis (fsdp, dp)"},
    {"SP4011", Severity::warning, "head_dim cut",
     "The dimension within a head is cut instead of the heads: each attention score becomes a sum over devices and "
     "needs a collective of its own.",
     "Cut whole heads: head_axis and kv_head_axis.", "vllm-project/tpu-inference pull request 2585"},
    {"SP4012", Severity::warning, "key/value heads replicated",
     "There are fewer key/value heads than devices along their axes, so each head, its weights and its cache are held "
     "by several devices. Where Megatron-Core would refuse it, the message says so: before 0.16 (compat \"seed\") in any "
     "case, since then where the rows of its joined QKV weight do not divide.",
     "Use fewer devices for heads and the rest for batch or sequence, or options.kv_heads \"split\" for the weights.",
     "vLLM's replication; Megatron-Core 0.16; MaxText's attention data parallelism"},
    {"SP4013", Severity::warning, "unused rule",
     "A rule of partition_rules decides the place of no parameter: its pattern is found in no checkpoint name, or an "
     "earlier rule takes all of them. The output head of a tied embedding is no tensor of its own.",
     "Correct the pattern, move the rule up, or remove it.", "MaxText: parameters left unsharded by a rule that did not "
     "match"},
    {"SP4014", Severity::warning, "padded vocabulary",
     "options.indivisible is \"pad\", or padded_vocab_size is given, and embedding and head have more rows than the "
     "vocabulary. One size holds for both. The rows are zero and in no checkpoint; their logits never win an argmax and "
     "are in no result.",
     "Nothing to do when the memory is affordable; another size of the axis may need no padding.",
     "Megatron-Core make-vocab-size-divisible-by (128 * tp)"},
    {"SP4015", Severity::error, "tied tensors cut differently",
     "The output head is tied to the token embedding: they are one tensor, and two rules of the job give it two "
     "different specs. Whichever won, the other use would be computed from the wrong shards.",
     "Give both rules the same spec, or remove the one for the head.", "awslabs/slapo issue 12"},
    {"SP4020", Severity::error, "sequence-parallel attention",
     "The way of attention that the job fixes is not possible over its axes, or the sequence cannot be cut for the load "
     "balance. Ulysses (a2a) cuts the query heads over the axes of heads and sequence together; a ring (p2p) needs "
     "queries that are cut over all axes of the keys; the load balance gives each device two chunks of the sequence.",
     "Use one of the ways or lengths that the message names, or cp_comm_type \"auto\".",
     "Megatron-Core cp_comm_type and its check of the sequence (2 * cp); Ulysses' head count"},
    {"SP4021", Severity::warning, "no sequence-parallel attention",
     "The job sets an option of attention over sequence axes, but no axis of size greater than 1 cuts the sequence of "
     "both queries and keys, so that it changes nothing.",
     "Remove the option, or cut queries and keys over an axis.", ""},

    // ---- the backend ----
    {"SP5001", Severity::error, "provider refused",
     "The backend provider cannot run this model on this mesh. The inference provider needs RMSNorm, no biases, even "
     "cuts and a token count that divides over the tensor-parallel devices, as its residual stream is cut by tokens. "
     "int8 weights (backend.weight_dtype) are of the inference provider only.",
     "Use the provider that the message suggests, or \"auto\".",
     "Megatron-Core inference layers and TransformerConfig (inference_optimized)"},
    {"SP5002", Severity::note, "provider chosen",
     "The job leaves the choice of the provider to the planner; this is why it took the one it took.",
     "Name a provider to fix the choice.", ""},
    {"SP5003", Severity::warning, "not for Megatron",
     "The plan is good and runs here, but Megatron-Core would refuse the same configuration with this provider: its "
     "local norm does not take sequence parallelism or zero-centred gamma, its local attention no context parallelism "
     "and no bias, its local latent attention no ranks that do not divide, its inference layers no experts that are cut "
     "themselves, and no provider before 0.16 fewer key/value heads than devices.",
     "Take the provider \"fused\" when the plan is meant for Megatron, and a number of devices that divides the heads.",
     "Megatron-Core torch_norm, dot_product_attention, TransformerConfig (num_query_groups)"},
    {"SP5004", Severity::warning, "nothing to send to experts",
     "The job asks for the all-to-all dispatcher, but all devices of the experts' axes hold the same tokens: each of them "
     "computes its own experts and the results are added up, as the all-gather dispatcher does.",
     "Cut the tokens over the experts' axes too, or leave the choice to the planner.", ""},

    {"SP5005", Severity::warning, "expert option without effect",
     "An option of experts is set where it changes nothing: the model has no experts, or the older grouped product is "
     "asked for while grouped products are switched off.",
     "Remove the option, or correct the one that switches it off.", "Megatron-Core get_gpt_layer_spec (moe options)"},
    {"SP5006", Severity::warning, "weights not in int8",
     "The job asks for int8 weights, and the model's experts, the most of its weights, are not kept in int8: the "
     "grouped product multiplies weights of the workload's dtype only. Or none is: each weight is gathered before use.",
     "Nothing is wrong with the plan: its memory counts each weight as it is kept. Remove weight_dtype where the other "
     "linears are not worth their rounding.", ""},

    // ---- the plan ----
    {"SP6001", Severity::error, "no placement",
     "No placement of an operation was found that meets everything the job asks of its operands.",
     "Remove a constraint on the tensors of this operation.", ""},
    {"SP6002", Severity::error, "workload",
     "The workload does not fit the model: more positions than a learned table has, a cache that is shorter than the "
     "sequence, or more layers than there are.",
     "Use a length within the limit that the message gives.", "Megatron-Core argument checks (sequence and positions)"},
    {"SP6003", Severity::error, "memory over budget",
     "A device needs more memory than device_memory. Parameters, caches, the peak of the activations and the copies and "
     "buffers of communication are counted; each part is given.",
     "Cut the largest part over more devices, or make batch or cache smaller.", ""},
    {"SP6004", Severity::warning, "beyond trained positions",
     "The sequence is longer than max_position_embeddings. Rotary positions can be computed for it, but the model was "
     "not trained there; Megatron refuses it.",
     "Shorten the sequence or give the config the scaling it was trained with.",
     "Megatron-Core argument checks (max_position_embeddings)"},

    // ---- running ----
    {"SP7001", Severity::error, "checkpoint",
     "The checkpoint does not hold the tensors of the model, or its files contradict its index or their own headers.",
     "Fetch the files again; compare the config with the checkpoint.", "safetensors format"},
    {"SP7002", Severity::error, "token file",
     "The token file does not fit the workload: number of sequences, their length, or ids outside the vocabulary.",
     "Give batch_size sequences of sequence_length ids below vocab_size.", ""},
    {"SP7003", Severity::warning, "file beside the index",
     "The directory of the checkpoint has an index, and a file of weights that the index does not name. The index "
     "decides: the file is not read. Left over from a conversion or an earlier download, it may hold other weights.",
     "Remove the file, or name it with --weights FILE when it is the one that is meant.", "Blaizzy/mlx-vlm 1464"},
});
// clang-format on

}  // namespace shardplan::diag
