#include <fmt/format.h>

#include "model/graph.h"

namespace shardplan::model {
namespace {

constexpr std::int64_t largest = std::int64_t{1} << 40;

bool check_chunks(const Workload& workload, diag::Diagnostics& diagnostics) {
    if (workload.chunk_length == 0) {
        return true;
    }
    std::string problem;
    if (workload.continues()) {
        problem = workload.mode == Mode::decode
                      ? "chunks are for prefill, a decode step has one token of each sequence"
                      : "chunks are for prefill, the tokens of an insert step are insert_length";
    } else if (workload.chunk_length < 1 || workload.chunk_length > workload.sequence_length ||
               workload.sequence_length % workload.chunk_length != 0) {
        problem = fmt::format("sequence_length {} is not a multiple of chunk_length {}", workload.sequence_length,
                              workload.chunk_length);
    }
    if (!problem.empty()) {
        diagnostics.report("SP6002", problem, "/workload/chunk_length",
                           workload.continues() ? "leave chunk_length out"
                                                : "all chunks of a plan have the same length; give a divisor");
    }
    return problem.empty();
}

/// "decode with sequence_length 8", and what the step adds where that is not one token.
std::string described(const Workload& workload) {
    std::string text = fmt::format("{} with sequence_length {}", to_string(workload.mode), workload.sequence_length);
    const std::int64_t behind = workload.positions() - workload.sequence_length;
    return behind > 1 ? text + fmt::format(" and {} tokens behind it", behind) : text;
}

}  // namespace

void check_workload(const ModelSpec& model, const Workload& workload, diag::Diagnostics& diagnostics) {
    const auto check_range = [&](std::string_view field, std::int64_t value, std::int64_t lowest) {
        if (value < lowest || value > largest) {
            diagnostics.report("SP6002", fmt::format("{} must lie in {} ... {}, not {}", field, lowest, largest, value),
                               fmt::format("/workload/{}", field));
            return false;
        }
        return true;
    };
    bool sane = check_range("batch_size", workload.batch_size, 1);
    sane = check_range("sequence_length", workload.sequence_length, 1) && sane;
    sane = check_range("cache_length", workload.cache_length, 0) && sane;
    sane = check_range("insert_length", workload.insert_length, 1) && sane;
    if (!sane) {
        return;
    }
    if (!check_chunks(workload, diagnostics)) {
        return;
    }
    const std::int64_t positions = workload.positions();
    const std::string what = described(workload);
    if (workload.cache_length > 0 && workload.cache_length < positions) {
        diagnostics.report(
            "SP6002", fmt::format("the cache holds {} positions, {} needs {}", workload.cache_length, what, positions),
            "/workload/cache_length", fmt::format("set cache_length to {} or more", positions));
    }
    const std::int64_t rows = model.position_rows - model.position_offset;
    if (model.position_rows > 0 && positions > rows) {
        const std::int64_t behind = positions - workload.sequence_length;
        const bool fits = behind < rows;  // one position at least is for the sequence
        diagnostics.report(
            "SP6002",
            fmt::format("{} needs {} positions, the learned position table of {} has {}", to_string(workload.mode),
                        positions, model.model_type, rows),
            !fits && workload.mode == Mode::insert ? "/workload/insert_length" : "/workload/sequence_length",
            fits ? fmt::format("set sequence_length to {} or less", rows - behind)
            : workload.mode == Mode::insert && workload.sequence_length < rows
                ? fmt::format("set insert_length to {} or less", rows - workload.sequence_length)
                : fmt::format("the positions of a step must fit into {}", rows));
    }
}

}  // namespace shardplan::model
