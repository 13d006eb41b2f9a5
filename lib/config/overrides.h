// What the command line changes in a job. An override is written into the job's document before it is read, so that it
// passes the same checks as the file; its places name the option: file "<--set workload.batch_size>".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/document.h"

namespace shardplan::config {

struct Overrides {
    std::optional<std::string> mesh = {};     ///< "dp=2,tp=4": replaces the mesh; a -1 without ranks keeps its devices
    std::optional<std::string> mode = {};     ///< "prefill", "decode" or "insert"
    std::vector<std::string> set = {};        ///< "key.path=value", value as JSON, otherwise taken as a string
    std::optional<std::int64_t> ranks = {};   ///< fills a -1 of the mesh when the job has no device count
    bool ranks_decide = false;                ///< `ranks` is the number of devices, whatever the job says
    std::optional<std::int64_t> layers = {};  ///< only the first N layers of the model
    /// Decode mode, with a cache that has room for N tokens after the prompt of sequence_length.
    std::optional<std::int64_t> generate = {};
    std::optional<std::int64_t> longest_prompt =
        {};  ///< with generate: of --prompt-lengths, instead of sequence_length
};

/// Applies mesh, mode and set, in this order. A section that is written as one name (backend) becomes its object.
/// Errors: SP1004 (no key), SP1005 (a path through a value that is no object), SP3001 (mesh text), and those of
/// parse_document for values that begin as JSON.
void apply_overrides(Document& document, const Overrides& overrides, diag::Diagnostics& diagnostics);

/// True when a "set" changes something within the section `key`.
bool changes_within(const Overrides& overrides, std::string_view key);

}  // namespace shardplan::config
