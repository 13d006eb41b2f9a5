#include "mesh/collective.h"

#include "base/checked.h"

namespace shardplan::mesh {

using base::checked_mul;

std::string_view to_string(CollectiveKind kind) {
    switch (kind) {
        case CollectiveKind::all_gather: return "all-gather";
        case CollectiveKind::reduce_scatter: return "reduce-scatter";
        case CollectiveKind::all_reduce: return "all-reduce";
        case CollectiveKind::all_reduce_max: return "all-reduce-max";
        case CollectiveKind::all_to_all: return "all-to-all";
        case CollectiveKind::all_to_all_v: return "all-to-all-v";
        case CollectiveKind::permute: return "permute";
        case CollectiveKind::send: return "send";
        case CollectiveKind::slice: return "slice";
    }
    return "slice";
}

std::int64_t group_wire_bytes(CollectiveKind kind, std::int64_t n, std::int64_t payload, std::int64_t movers) {
    switch (kind) {
        case CollectiveKind::all_gather: return checked_mul(checked_mul(n, n - 1), payload);
        case CollectiveKind::reduce_scatter:
        case CollectiveKind::all_to_all: return checked_mul(n - 1, payload);
        case CollectiveKind::all_reduce:
        case CollectiveKind::all_reduce_max: return checked_mul(2 * (n - 1), payload);
        case CollectiveKind::all_to_all_v:
        case CollectiveKind::permute: return checked_mul(movers, payload);
        case CollectiveKind::send: return payload;
        case CollectiveKind::slice: return 0;
    }
    return 0;
}

std::int64_t staging_bytes(CollectiveKind kind, std::int64_t n, std::int64_t input_bytes, std::int64_t output_bytes,
                           std::int64_t element_bytes) {
    switch (kind) {
        case CollectiveKind::all_gather: return output_bytes;
        case CollectiveKind::reduce_scatter:
        case CollectiveKind::all_to_all: return checked_mul(2, input_bytes);
        case CollectiveKind::all_reduce:
        case CollectiveKind::all_reduce_max: {
            const std::int64_t chunk = base::ceil_div(input_bytes / element_bytes, n);
            return checked_mul(checked_mul(n, chunk), element_bytes);
        }
        case CollectiveKind::all_to_all_v:
        case CollectiveKind::permute:
        case CollectiveKind::send:
        case CollectiveKind::slice: return 0;
    }
    return 0;
}

}  // namespace shardplan::mesh
