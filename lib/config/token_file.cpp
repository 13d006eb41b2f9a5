#include "config/token_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "config/document.h"
#include "config/file.h"
#include "config/object_reader.h"

namespace shardplan::config {
namespace {

using model::ConfigValue;

constexpr std::size_t most_reported = 20;

class TokenReader {
public:
    TokenReader(const TokenShape& shape, diag::Diagnostics& diagnostics) : shape_(shape), diagnostics_(diagnostics) {}

    std::vector<std::int32_t> read(const ConfigValue& root) {
        std::vector<std::int32_t> ids;
        const ConfigValue::Array* rows = root.array();
        if (rows == nullptr || std::any_of(rows->begin(), rows->end(), [](const auto& r) { return !r.array(); })) {
            report(root, "a token file is a list of sequences, each a list of token ids",
                   "e.g. [[1, 15, 7], [1, 8, 9]]");
            return ids;
        }
        if (std::ssize(*rows) != shape_.batch) {
            report(root, fmt::format("{} sequences, but the batch has {}", rows->size(), shape_.batch),
                   fmt::format("give {} sequences or set workload.batch_size to {}", shape_.batch, rows->size()));
        }
        for (const ConfigValue& row : *rows) {
            read_row(row, ids);
        }
        return ids;
    }

private:
    void report(const ConfigValue& at, std::string message, std::string hint = "") {
        diagnostics_.report("SP7002", std::move(message), at.pointer, std::move(hint));
    }

    void read_row(const ConfigValue& row, std::vector<std::int32_t>& ids) {
        if (std::ssize(*row.array()) != shape_.length) {
            report(row, fmt::format("a sequence has {} tokens, needed are {}", row.array()->size(), shape_.length),
                   "as many as workload.sequence_length and, where there is a cache, what is written behind it");
        }
        const std::int64_t end =
            std::min<std::int64_t>(shape_.vocab, std::int64_t{std::numeric_limits<std::int32_t>::max()} + 1);
        for (const ConfigValue& id : *row.array()) {
            const std::int64_t* value = id.integer();
            if (value != nullptr && *value >= 0 && *value < end) {
                ids.push_back(static_cast<std::int32_t>(*value));
            } else if (diagnostics_.error_count() < most_reported) {
                report(id, fmt::format("a token id is an integer in 0 ... {}, not {}", end - 1, describe(id)));
            }
        }
    }

    const TokenShape& shape_;
    diag::Diagnostics& diagnostics_;
};

}  // namespace

std::optional<std::vector<std::int32_t>> read_token_file(const std::string& path, const TokenShape& shape,
                                                         diag::Diagnostics& diagnostics) {
    Limits limits;
    limits.bytes = std::size_t{64} << 20;
    limits.values = 8'000'000;
    const auto text = read_file(path, limits.bytes, diagnostics);
    const auto document = text ? parse_document(*text, path, diagnostics, limits) : std::nullopt;
    if (!document) {
        return std::nullopt;
    }
    diag::Diagnostics found;
    std::vector<std::int32_t> ids = TokenReader(shape, found).read(document->root);
    attach_spans(found, *document);
    for (const diag::Diagnostic& diagnostic : found.all()) {
        diagnostics.add(diagnostic);
    }
    return found.has_errors() ? std::nullopt : std::optional(std::move(ids));
}

}  // namespace shardplan::config
