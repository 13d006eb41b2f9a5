#include "bare_mpi.h"

#include <mpi.h>

namespace shardplan::bench {

namespace {

void add_bf16(void* in, void* in_out, int* length, MPI_Datatype* /*type*/) {
    const auto* from = static_cast<const std::uint16_t*>(in);
    auto* to = static_cast<std::uint16_t*>(in_out);
    for (int i = 0; i < *length; ++i) {
        to[i] = tensor::bf16_from_float(tensor::float_from_bf16(to[i]) + tensor::float_from_bf16(from[i]));
    }
}

struct Sum {
    MPI_Datatype type = MPI_FLOAT;
    MPI_Op op = MPI_SUM;
};

Sum sum_of(tensor::DType dtype) {
    if (dtype != tensor::DType::bf16) {
        return {};
    }
    static MPI_Op op = [] {
        MPI_Op made = MPI_OP_NULL;
        MPI_Op_create(add_bf16, 1, &made);
        return made;
    }();
    return {MPI_UINT16_T, op};
}

int count_of(tensor::DType dtype, std::int64_t bytes) {
    return static_cast<int>(bytes / tensor::size_of(dtype));
}

}  // namespace

double wall_seconds() {
    return MPI_Wtime();
}

void mpi_barrier() {
    MPI_Barrier(MPI_COMM_WORLD);
}

void mpi_all_reduce(tensor::DType dtype, std::byte* data, std::int64_t bytes) {
    const Sum sum = sum_of(dtype);
    MPI_Allreduce(MPI_IN_PLACE, data, count_of(dtype, bytes), sum.type, sum.op, MPI_COMM_WORLD);
}

void mpi_all_gather(const std::byte* in, std::byte* out, std::int64_t block_bytes) {
    const auto bytes = static_cast<int>(block_bytes);
    MPI_Allgather(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

void mpi_reduce_scatter(tensor::DType dtype, const std::byte* in, std::byte* out, std::int64_t block_bytes) {
    const Sum sum = sum_of(dtype);
    MPI_Reduce_scatter_block(in, out, count_of(dtype, block_bytes), sum.type, sum.op, MPI_COMM_WORLD);
}

void mpi_all_to_all(const std::byte* in, std::byte* out, std::int64_t block_bytes) {
    const auto bytes = static_cast<int>(block_bytes);
    MPI_Alltoall(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

void mpi_pass_on(const std::byte* in, std::byte* out, std::int64_t bytes) {
    int rank = 0;
    int size = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const auto count = static_cast<int>(bytes);
    MPI_Sendrecv(in, count, MPI_BYTE, (rank + 1) % size, 0, out, count, MPI_BYTE, (rank + size - 1) % size, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

}  // namespace shardplan::bench
