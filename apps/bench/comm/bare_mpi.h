// What a program without this library would call: MPI's own collectives over all ranks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace shardplan::bench {

double wall_seconds();
void mpi_barrier();

/// In place. f32 with MPI_SUM; bf16, which MPI does not know, with an operation of its own.
void mpi_all_reduce(tensor::DType dtype, std::byte* data, std::int64_t bytes);
/// `block_bytes` from each rank.
void mpi_all_gather(const std::byte* in, std::byte* out, std::int64_t block_bytes);
/// Sums; `block_bytes` for each rank.
void mpi_reduce_scatter(tensor::DType dtype, const std::byte* in, std::byte* out, std::int64_t block_bytes);
/// `block_bytes` for each rank.
void mpi_all_to_all(const std::byte* in, std::byte* out, std::int64_t block_bytes);
/// To the next rank, from the one before.
void mpi_pass_on(const std::byte* in, std::byte* out, std::int64_t bytes);

}  // namespace shardplan::bench
