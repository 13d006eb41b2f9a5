// The collectives a plan may hold, and what they cost: the bytes that leave a device and the staging a device needs.
// The volumes are those of the ring (and of our direct) algorithms: all-gather and reduce-scatter (n-1)/n of the whole,
// all-reduce twice that (Thakur, Rabenseifner, Gropp 2005).
#pragma once

#include <cstdint>
#include <string_view>

namespace shardplan::mesh {

enum class CollectiveKind : std::uint8_t {
    all_gather,      ///< every rank gets the blocks of all, concatenated along one dimension
    reduce_scatter,  ///< sum over the group, each rank keeps one block of one dimension
    all_reduce,      ///< sum over the group
    all_reduce_max,  ///< maximum over the group
    all_to_all,      ///< one dimension is split, another concatenated
    all_to_all_v,    ///< rows go to the ranks that the data decide; sizes are known to both sides beforehand
    permute,         ///< each rank takes a whole block of another rank
    send,            ///< each rank gives its data to one rank of the next stage of a pipeline
    slice,           ///< keeps a block of the own data; no communication
};

/// "all-gather", "reduce-scatter", ...
std::string_view to_string(CollectiveKind kind);

/// Bytes sent by all ranks of one group of n together. `payload` = bytes of each rank's input.
/// all_gather n(n-1)p, reduce_scatter (n-1)p, all_reduce 2(n-1)p, all_to_all (n-1)p; slice 0. send is no collective of
/// a group: p for each rank that sends.
/// For permute pass the number of ranks that take another rank's block as `movers`: movers * p; for all_to_all_v the
/// rows that leave their rank, and the bytes of one as payload.
std::int64_t group_wire_bytes(CollectiveKind kind, std::int64_t n, std::int64_t payload, std::int64_t movers = 0);

/// Bytes of scratch memory that the communicator needs beside input and output.
/// all_gather: the output; reduce_scatter, all_to_all: twice the input; all_reduce(_max): n * ceil(count / n) elements;
/// the others: none.
std::int64_t staging_bytes(CollectiveKind kind, std::int64_t n, std::int64_t input_bytes, std::int64_t output_bytes,
                           std::int64_t element_bytes);

}  // namespace shardplan::mesh
