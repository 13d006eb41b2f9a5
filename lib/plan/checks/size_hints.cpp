#include "plan/checks/size_hints.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/checked.h"

namespace shardplan::plan {

using partition::Phase;
using partition::Semantic;
using partition::SpecEntry;

namespace {

constexpr std::size_t most_sizes = 24;

struct Demand {
    std::int64_t units = 1;
    bool shareable = false;  ///< key/value heads: a multiple of the heads works too
    SpecEntry axes;          ///< that the mesh has
};

SpecEntry present(const Job& job, SpecEntry axes) {
    std::erase_if(axes, [&](const std::string& name) { return !job.mesh.find(name); });
    return axes;
}

std::vector<Demand> demands(const Job& job, bool cache_grows) {
    const model::ModelSpec& model = job.model;
    const model::Workload& workload = job.workload;
    struct Row {
        Semantic semantic;
        std::int64_t units;  ///< 0 = the model has no such dimension
    };
    const bool dense =
        std::any_of(model.layers.begin(), model.layers.end(), [](const auto& layer) { return !layer.moe; });
    const std::array rows = {
        Row{Semantic::head, model.attention.heads},
        Row{Semantic::kv_head, model.attention.kv_heads},
        Row{Semantic::mlp_intermediate, dense ? model.mlp.intermediate : 0},
        Row{Semantic::mlp_intermediate, model.moe.intermediate},
        Row{Semantic::mlp_intermediate, model.moe.shared_intermediate},
        Row{Semantic::expert, model.moe.experts},
        Row{Semantic::vocab, model.vocab_rows()},
        Row{Semantic::embed, model.hidden},
        Row{Semantic::weight_storage, model.hidden},
        Row{Semantic::weight_storage, model.attention.latent.kv_rank},
        Row{Semantic::weight_storage, model.attention.latent.q_rank},
        Row{Semantic::batch, workload.batch_size},
        Row{Semantic::head_dim, model.attention.head_dim},
    };
    const Phase step = phase_of(job);
    std::vector<Demand> result;
    for (const Phase phase : {Phase::train, step}) {
        for (const Row& row : rows) {
            if (row.units == 0) {
                continue;
            }
            const auto entry = job.partition_axis.resolve(row.semantic, phase);
            result.push_back({row.units, row.semantic == Semantic::kv_head, present(job, entry.axes)});
        }
    }
    if (step == Phase::prefill) {
        for (const Semantic semantic : {Semantic::length, Semantic::query_length, Semantic::kv_length}) {
            const auto entry = job.partition_axis.resolve(semantic, step);
            result.push_back({workload.query_length(), false, present(job, entry.axes)});
        }
    }
    if (partition::is_generation(step)) {
        const auto entry = job.partition_axis.resolve(Semantic::query_length, step);
        result.push_back({workload.query_length(), false, present(job, entry.axes)});
    }
    if (workload.cache_length > 0 && !cache_grows) {
        const auto entry = job.partition_axis.resolve(Semantic::kv_length, Phase::train);
        result.push_back({workload.cache_length, false, present(job, entry.axes)});
    }
    return result;
}

/// The devices of `all` beside those of `axes`; 0 when `all` does not hold all of `axes`.
std::int64_t rest_of(const Job& job, const SpecEntry& all, const SpecEntry& axes) {
    std::int64_t rest = 1;
    for (const std::string& name : all) {
        rest *= std::find(axes.begin(), axes.end(), name) == axes.end() ? job.mesh.size(*job.mesh.find(name)) : 1;
    }
    const bool holds = std::all_of(axes.begin(), axes.end(), [&](const std::string& name) {
        return std::find(all.begin(), all.end(), name) != all.end();
    });
    return holds ? rest : 0;
}

}  // namespace

std::vector<std::int64_t> divisors(std::int64_t n, std::int64_t largest_searched) {
    std::vector<std::int64_t> small;
    std::vector<std::int64_t> large;
    for (std::int64_t d = 1; d * d <= n && d <= largest_searched; ++d) {
        if (n % d == 0) {
            small.push_back(d);
            if (d * d != n) {
                large.push_back(n / d);
            }
        }
    }
    small.insert(small.end(), large.rbegin(), large.rend());
    return small;
}

std::vector<std::int64_t> working_sizes(const Job& job, const SpecEntry& axes, std::int64_t units, bool cache_grows) {
    const std::vector<Demand> all = demands(job, cache_grows);
    std::vector<std::int64_t> result;
    constexpr std::int64_t largest_searched = 2'000'000;
    for (const std::int64_t size : divisors(units, largest_searched)) {
        const bool works = std::all_of(all.begin(), all.end(), [&](const Demand& demand) {
            const std::int64_t rest = rest_of(job, demand.axes, axes);
            if (rest == 0 || size > demand.units * (demand.shareable ? size : 1)) {
                return rest == 0;
            }
            const std::int64_t parts = base::checked_mul(size, rest);
            return demand.units % parts == 0 || (demand.shareable && parts % demand.units == 0);
        });
        if (works && result.size() < most_sizes) {
            result.push_back(size);
        }
    }
    return result;
}

std::int64_t padded_vocabulary(std::int64_t vocab, std::int64_t parts) {
    const std::int64_t step = base::checked_mul(128, parts);
    return base::checked_mul(base::ceil_div(vocab, step), step);
}

namespace {

/// The next batch or length that works, as the job has to state it.
std::string next_size_hint(const Job& job, std::string_view name, std::int64_t units, std::int64_t product) {
    const model::Workload& workload = job.workload;
    const bool prefill = !workload.continues();
    if (name == "chunk_length") {
        for (std::int64_t chunk = (units / product + 1) * product; chunk <= workload.sequence_length;
             chunk += product) {
            if (workload.sequence_length % chunk == 0) {
                return fmt::format("the next chunk_length that works is {}", chunk);
            }
        }
        return fmt::format("make sequence_length and chunk_length multiples of {}", product);
    }
    const bool two_chunks = name == "sequence_length" && prefill && job.options.context_parallel_load_balance;
    const std::int64_t step = base::checked_mul(product, two_chunks ? 2 : 1);
    const std::int64_t next = base::checked_mul(units / step + 1, step);
    if (name == "micro-batch size") {
        return fmt::format("the next batch_size that works with {} micro_batches is {}", workload.micro_batches,
                           base::checked_mul(next, workload.micro_batches));
    }
    std::string hint = fmt::format("the next {} that works is {}", name, next);
    const SpecEntry length_axes = present(job, job.partition_axis.resolve(Semantic::length, Phase::prefill).axes);
    const bool whole = std::all_of(length_axes.begin(), length_axes.end(),
                                   [&](const std::string& axis) { return job.mesh.size(*job.mesh.find(axis)) == 1; });
    if (name == "batch_size" && prefill && whole && workload.query_length() % product == 0) {
        hint += fmt::format("; or cut the sequence instead ({} is a multiple of {})", workload.query_length(), product);
    }
    return hint;
}

}  // namespace

std::string size_hint(const Job& job, const DimRequest& dim, const SpecEntry& axes, std::int64_t product,
                      bool cache_grows) {
    const std::string_view name = dim.dimension;
    if (name == "sequence_length" && job.workload.mode == model::Mode::decode) {
        return fmt::format("a decode step has one token of each sequence: set {} to null", dim.entry.field);
    }
    for (const std::string_view free :
         {"batch_size", "micro-batch size", "sequence_length", "chunk_length", "insert_length", "cache_length"}) {
        if (name == free) {
            return next_size_hint(job, name, dim.units, product);
        }
    }
    const std::string what = axes.size() == 1 ? fmt::format("sizes of {}", axes.front()) : "sizes";
    const std::vector<std::int64_t> common = working_sizes(job, axes, dim.units, cache_grows);
    std::string hint = common.empty()
                           ? fmt::format("sizes that divide {}: {}", dim.units, divisors_text(dim.units))
                           : fmt::format("{} that work for all that {}: {}", what,
                                         axes.size() == 1 ? "it cuts" : "these axes cut", fmt::join(common, ", "));
    if (name == "num_experts" && product > dim.units && product % dim.units == 0) {
        hint += fmt::format("; or two axes: {} devices for the experts and {} within each of them (head_axis)",
                            dim.units, product / dim.units);
    }
    if (name == "vocab_size") {
        hint += fmt::format(
            "; or a vocabulary padded to {} (a multiple of 128 * {}, as Megatron pads): options.indivisible \"pad\"",
            padded_vocabulary(dim.units, product), product);
    }
    return hint;
}

}  // namespace shardplan::plan
