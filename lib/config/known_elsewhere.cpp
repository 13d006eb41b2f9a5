#include "config/known_elsewhere.h"

#include <algorithm>
#include <array>

namespace shardplan::config {
namespace {

constexpr KnownElsewhere training_row = {
    " train training optimizer optimizer_config learning_rate gradient_accumulation_steps zero_stage zero_optimization "
    "recompute recompute_granularity activation_checkpointing use_distributed_optimizer ",
    "only inference is planned (prefill and decode): no gradients, no optimizer states, no backward communication",
    "plan prefill for weights and activations of the forward pass; mixed-precision Adam keeps about 16 bytes per "
    "parameter (bf16 weight and gradient, f32 master weight and two moments), cut as the weights are"};

constexpr auto table = std::to_array<KnownElsewhere>({
    training_row,
    {" norm_grad_reduce grad_reduce_dtype grad_reduce average_in_collective ",
     "only inference is planned, so that no gradient is reduced; where it is, gradients of weights that are whole on "
     "devices with different parts of the sequence need the sum, as each device saw other tokens (a mean is off by the "
     "number of devices)",
     "remove it: the sums of the forward pass are always sums"},
    {" reduce_dtype reduction_dtype all_reduce_dtype allreduce_dtype ",
     "sums over devices travel in workload.dtype; a device adds bf16 in f32 and rounds once",
     "remove it, or set workload.dtype to f32: twice the bytes on the wire, and the plan states them"},
    {" virtual_pipeline_model_parallel_size num_layers_per_virtual_pipeline_stage num_virtual_stages_per_pipeline_rank "
     "virtual_pipeline_parallel_size microbatch_group_size_per_virtual_pipeline_stage pipeline_model_parallel_layout "
     "overlap_p2p_communication ",
     "interleaved (virtual) pipeline stages are not supported: a device of a stage holds one run of neighbouring "
     "layers",
     "remove it; pipeline.layers gives stages of different lengths"},
    {" num_layers_in_first_pipeline_stage num_layers_in_last_pipeline_stage decoder_first_pipeline_num_layers "
     "decoder_last_pipeline_num_layers ",
     "stages are given by pipeline.layers", R"(for example "pipeline": {"layers": [7, 9, 9, 7]})"},
    {" account_for_embedding_in_pipeline_split ", "this is pipeline.account_for_embedding here",
     "write account_for_embedding in pipeline"},
    {" account_for_loss_in_pipeline_split ", "this is pipeline.account_for_loss here",
     "write account_for_loss in pipeline"},
    {" tensor_model_parallel_size tensor_parallel_size tp_size tp ", "sizes are those of mesh axes",
     R"(write "mesh": {"axes": {"tp": #}}; head_axis, vocab_axis and mlp_intermediate_axis name the axis)"},
    {" pipeline_model_parallel_size pipeline_parallel_size pp_size pp ", "sizes are those of mesh axes",
     R"(write "mesh": {"axes": {"pp": #}}; layers are dealt out along an axis called pp)"},
    {" context_parallel_size cp_size cp ", "sizes are those of mesh axes",
     R"(write "mesh": {"axes": {"sp": #}}; query_sequence_axis and key_sequence_axis name the axis)"},
    {" expert_model_parallel_size expert_parallel_size ep_size ep ", "sizes are those of mesh axes",
     R"(write "mesh": {"axes": {"ep": #}}; expert_axis names the axis)"},
    {" expert_tensor_parallel_size ", "experts are cut by the axes of mlp_intermediate_axis that expert_axis lacks",
     "name the axes in partition_axis"},
    {" data_parallel_size dp_size dp fsdp ", "sizes are those of mesh axes",
     R"(write "mesh": {"axes": {"dp": #}}; batch_axis names the axis)"},
    {" sequence_parallel ", "what cuts the tokens between the linears is sequence_axis",
     R"(write "partition_axis": {"sequence_axis": "tp", "head_axis": "tp", "hidden_state_axis": null})"},
    {" moe_expert_capacity_factor capacity_factor expert_capacity_factor moe_pad_expert_input_to_capacity "
     "moe_token_drop_policy ",
     "experts take every token that chooses them: there is no capacity and nothing is dropped or padded", "remove it"},
    {" moe_router_topk num_experts_per_tok moe_router_score_function moe_router_num_groups moe_router_group_topk ",
     "what the router does stands in the config of the model",
     "set it in model, or with --set model.num_experts_per_tok=2"},
    {" moe_layer_freq moe_latent_size moe_ffn_hidden_size num_moe_experts multi_latent_attention q_lora_rank "
     "kv_lora_rank "
     "group_query_attention num_query_groups kv_channels qk_layernorm qk_l2_norm no_rope_freq add_bias_linear "
     "add_qkv_bias normalization experimental_attention_variant num_layers hidden_size ffn_hidden_size "
     "num_attention_heads ",
     "what the model is made of stands in its config, by the names of Hugging Face",
     "remove it: the modules follow from model_type and the fields of model"},
    {" mla_down_proj_fusion ", "the down projections of latent attention are two linears, whole on each device",
     "remove it"},
    {" variable_seq_lengths ",
     "each sequence of a step has the same number of tokens; behind a cache the lengths before it may differ, with "
     "either dispatcher",
     "remove it; run --prompt-lengths gives the lengths"},
    {" moe_router_dtype ", "a router computes its scores in f32", "remove it"},
    {" moe_router_padding_for_quantization moe_router_padding_for_fp8 ",
     "weights are not quantised, so that no expert's tokens are padded", "remove it"},
    {" moe_flex_dispatcher_backend moe_enable_deepep moe_shared_expert_overlap overlap_moe_expert_parallel_comm "
     "inference_moe_token_dispatcher_type ",
     "tokens reach experts by all-gather or all-to-all, with nothing computed meanwhile",
     "remove it; moe_token_dispatcher_type chooses one of allgather, alltoall"},
    {" inference_grouped_gemm_backend ", "the products of experts are those of this planner's kernels",
     "remove it; moe_use_grouped_gemm chooses between one product for all experts of a device and one for each"},
    {" fp16 bf16 params_dtype pipeline_dtype autocast_dtype fp8 fp4 fp8_param fp4_param ",
     "weights, activations and what stages send have one dtype, that of workload.dtype",
     R"(write "workload": {"dtype": "bf16"}; f32 is the other one)"},
    {" transformer_impl spec_provider ", "this is backend.provider here",
     R"(write "backend": {"provider": "fused"}; the names local, transformer_engine and inference_optimized work too)"},
    {" bias_activation_fusion bias_gelu_fusion bias_swiglu_fusion bias_dropout_fusion fused_residual_rmsnorm "
     "masked_softmax_fusion apply_rope_fusion inference_fuse_tp_communication tp_comm_overlap ",
     "what is joined follows from the provider, and plan shows it", "remove it, or choose another backend.provider"},
    {" hierarchical_context_parallel_sizes ", "one way of attention holds for all axes that cut queries and keys",
     "remove it, or give cp_comm_type one of p2p, a2a, all_gather"},
});

}  // namespace

const KnownElsewhere* known_elsewhere(std::string_view key) {
    if (key.empty() || key.find(' ') != std::string_view::npos) {
        return nullptr;
    }
    const auto* row = std::find_if(table.begin(), table.end(), [&](const KnownElsewhere& candidate) {
        for (std::size_t at = candidate.keys.find(key); at != std::string_view::npos;
             at = candidate.keys.find(key, at + 1)) {
            if (candidate.keys[at - 1] == ' ' && candidate.keys[at + key.size()] == ' ') {
                return true;
            }
        }
        return false;
    });
    return row == table.end() ? nullptr : row;
}

const KnownElsewhere& training() {
    return training_row;
}

}  // namespace shardplan::config
