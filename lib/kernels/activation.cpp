#include "kernels/activation.h"

#include <array>

namespace shardplan::kernels {
namespace {

struct Row {
    std::string_view name;
    Activation activation;
};

// The first row of each activation holds its canonical name.
constexpr std::array rows = {
    Row{"silu", Activation::silu},
    Row{"gelu", Activation::gelu},
    Row{"gelu_tanh", Activation::gelu_tanh},
    Row{"quick_gelu", Activation::quick_gelu},
    Row{"relu", Activation::relu},
    Row{"relu2", Activation::relu2},
    Row{"swish", Activation::silu},
    Row{"gelu_python", Activation::gelu},
    Row{"gelu_new", Activation::gelu_tanh},
    Row{"gelu_fast", Activation::gelu_tanh},
    Row{"gelu_pytorch_tanh", Activation::gelu_tanh},
};

}  // namespace

std::string_view to_string(Activation activation) {
    for (const Row& row : rows) {
        if (row.activation == activation) {
            return row.name;
        }
    }
    return "unknown";
}

std::optional<Activation> parse_activation(std::string_view name) {
    for (const Row& row : rows) {
        if (row.name == name) {
            return row.activation;
        }
    }
    return std::nullopt;
}

}  // namespace shardplan::kernels
