#include "diag/codes.h"

#include <algorithm>
#include <array>

namespace shardplan::diag {
namespace {

constexpr Severity error = Severity::error;
constexpr Severity warning = Severity::warning;
constexpr Severity note = Severity::note;

constexpr auto table = std::to_array<CodeInfo>({
    {"SP1001", error, "not readable", "The file cannot be opened or read."},
    {"SP1002", error, "JSON syntax", "The text is not one JSON document (RFC 8259)."},
    {"SP1003", error, "duplicate key", "A key stands twice in one object; which value is meant is not clear."},
    {"SP1004", error, "unknown key", "The job format has no such key."},
    {"SP1005", error, "wrong type", "The value has another JSON type than the field needs."},
    {"SP1006", error, "value out of range", "The value is outside the range the field allows."},
    {"SP1007", error, "missing key", "A required key is absent."},
    {"SP1008", error, "unknown name", "The value is not one of the names the field allows."},
    {"SP1009", error, "document too large", "The document is larger or nested deeper than the limits of the reader."},
    {"SP2001", error, "model type missing", "The model has no model_type, so its blocks are not known."},
    {"SP2002", error, "unsupported model", "The model's family or one of its features is not supported."},
    {"SP2003", error, "inconsistent model", "Two facts of the model contradict each other."},
    {"SP2004", note, "default used", "A field is absent and the family's default was taken."},
    {"SP2005", error, "size overflow", "A size or byte count of the model does not fit in 64 bits."},
    {"SP3001", error, "mesh shape", "An axis size, or the number of axes, is not allowed."},
    {"SP3002", error, "wildcard axis", "At most one axis may be -1, and it must be computable from the device count."},
    {"SP3003", error, "device count", "The product of the axis sizes differs from the number of devices."},
    {"SP4001", error, "duplicate axis", "A mesh axis may appear once in a PartitionSpec."},
    {"SP4002", error, "unknown axis", "A PartitionSpec names an axis that the mesh does not have."},
    {"SP4003", error, "not divisible", "A dimension is not a multiple of the product of its axes."},
    {"SP4004", warning, "entry dropped", "An entry of a PartitionSpec was replaced by None (indivisible: drop)."},
    {"SP4005", error, "bad partition rule", "A custom partition rule cannot be used."},
    {"SP4006", warning, "unsharded parameters", "A notable fraction of the parameters is sharded by no rule."},
    {"SP4007", error, "key/value heads", "The key/value heads can neither be cut nor shared evenly."},
    {"SP4008", error, "rank of spec", "A PartitionSpec has more entries than the tensor has dimensions."},
    {"SP5001", error, "provider refused", "The backend provider cannot run this model on this mesh."},
    {"SP5002", note, "provider chosen", "Why the automatic choice took this provider."},
    {"SP6001", error, "no placement", "No placement of an operation was found."},
    {"SP6002", error, "workload", "The workload does not fit the model or the mesh."},
    {"SP7001", error, "checkpoint", "The checkpoint does not hold the tensors of the model."},
    {"SP7002", error, "token file", "The token file does not fit the workload."},
});

}  // namespace

std::span<const CodeInfo> all_codes() {
    return table;
}

const CodeInfo* find_code(std::string_view code) {
    const auto it = std::find_if(table.begin(), table.end(), [&](const CodeInfo& row) { return row.code == code; });
    return it == table.end() ? nullptr : &*it;
}

}  // namespace shardplan::diag
