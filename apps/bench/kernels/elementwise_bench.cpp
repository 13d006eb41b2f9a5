#include <fmt/format.h>

#include <array>
#include <cstring>
#include <functional>
#include <memory>

#include "kernels/kernels.h"
#include "ratios.h"
#include "workload.h"

// Everything between the products, beside a loop that copies as many bytes as are read and written.
namespace shardplan::bench {
namespace {

using kernels::Activation;

const kernels::Kernels& onednn() {
    static const auto instance = kernels::make_kernels(kernels::KernelSet::onednn);
    return *instance;
}

/// What the operations read and write: rows of one width.
struct Operands {
    Operands(std::int64_t rows, std::int64_t width, DType type)
        : dtype(type), a({rows, width}, type), b({rows, width}, type), y({rows, width}, type), vector({width}, type) {}
    DType dtype;
    Data a, b, y, vector;
};

struct Operation {
    const char* name = "";
    int reads = 1;  ///< tensors of the size of y
    std::function<void(const Operands&)> run;
};

constexpr std::int64_t head_dim = 64;

void turn(const Operands& data) {
    static const std::vector<float> frequencies(head_dim / 2, 0.5F);
    const tensor::Shape& shape = data.a.view().shape;
    const tensor::Shape heads{1, shape[0], shape[1] / head_dim, head_dim};
    const std::array<std::int64_t, 1> start = {1000};
    onednn().rope({data.a.view().data, data.dtype, heads}, start, {.rotary_dim = head_dim, .inv_freq = frequencies},
                  {data.y.view().data, data.dtype, heads});
}

const std::vector<Operation>& operations() {
    const auto activation = [](const char* name, Activation which) {
        return Operation{name, 1, [which](const Operands& d) { onednn().activate(d.a.view(), which, d.y.view()); }};
    };
    static const std::vector<Operation> all = {
        activation("silu", Activation::silu),
        activation("gelu", Activation::gelu),
        activation("gelu_tanh", Activation::gelu_tanh),
        activation("relu", Activation::relu),
        {"swiglu", 2, [](const Operands& d) { onednn().glu(d.a.view(), d.b.view(), Activation::silu, d.y.view()); }},
        {"geglu", 2, [](const Operands& d) { onednn().glu(d.a.view(), d.b.view(), Activation::gelu, d.y.view()); }},
        {"add", 2, [](const Operands& d) { onednn().add(d.a.view(), d.b.view(), d.y.view()); }},
        {"scale", 1, [](const Operands& d) { onednn().scale(d.a.view(), 0.5F, d.y.view()); }},
        {"bias", 1, [](const Operands& d) { onednn().add_bias(d.a.view(), d.vector.view(), d.y.view()); }},
        {"softcap", 1, [](const Operands& d) { onednn().softcap(d.a.view(), 30.0F, d.y.view()); }},
        {"rms_norm", 1, [](const Operands& d) { onednn().norm(d.a.view(), d.vector.view(), {}, {}, d.y.view()); }},
        {"layer_norm", 1,
         [](const Operands& d) {
             onednn().norm(d.a.view(), d.vector.view(), d.vector.view(), {.kind = kernels::NormKind::layer},
                           d.y.view());
         }},
        {"rope", 1, turn},
    };
    return all;
}

std::int64_t bytes_of(const Operation& operation, const Operands& data) {
    return (operation.reads + 1) * data.y.view().bytes();
}

void run(benchmark::State& state, const Operation& operation, std::int64_t rows, std::int64_t width, DType dtype) {
    const Operands data(rows, width, dtype);
    for (auto _ : state) {
        operation.run(data);
    }
    count_bytes(state, bytes_of(operation, data));
}

/// As many bytes, half of them read and half written; in pieces, so that the library takes ordinary stores.
void run_copy(benchmark::State& state, const Operation& operation, std::int64_t rows, std::int64_t width, DType dtype) {
    const Operands data(rows, width, dtype);
    const std::int64_t bytes = bytes_of(operation, data);
    const Data from({bytes / 8});
    const Data to({bytes / 8});
    constexpr std::int64_t piece = 16384;
    for (auto _ : state) {
        for (std::int64_t i = 0; i < bytes / 2; i += piece) {
            std::memcpy(to.view().data + i, from.view().data + i,
                        static_cast<std::size_t>(std::min(piece, bytes / 2 - i)));
        }
        benchmark::ClobberMemory();
    }
    count_bytes(state, bytes);
}

}  // namespace

void register_elementwise() {
    constexpr std::int64_t width = 2048;
    for (const Operation& operation : operations()) {
        for (const DType dtype : {DType::f32, DType::bf16}) {
            for (const std::int64_t rows : {1, 512, 4096}) {
                const std::string group =
                    fmt::format("elements/{}/{}/{}x{}/", operation.name, tensor::to_string(dtype), rows, width);
                benchmark::RegisterBenchmark((group + our_variant).c_str(), run, operation, rows, width, dtype)
                    ->UseRealTime();
                benchmark::RegisterBenchmark((group + "copy").c_str(), run_copy, operation, rows, width, dtype)
                    ->UseRealTime();
            }
        }
    }
}

}  // namespace shardplan::bench
