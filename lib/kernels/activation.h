// The activation functions of the supported models and the names Hugging Face configs give them.
// gelu_tanh is the tanh approximation (gelu_new, gelu_fast, gelu_pytorch_tanh); relu2 is relu(x) squared.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace shardplan::kernels {

enum class Activation : std::uint8_t { silu, gelu, gelu_tanh, quick_gelu, relu, relu2 };

std::string_view to_string(Activation activation);

/// Accepts our names and those of `hidden_act` / `activation_function`; nullopt for an unknown name.
std::optional<Activation> parse_activation(std::string_view name);

}  // namespace shardplan::kernels
