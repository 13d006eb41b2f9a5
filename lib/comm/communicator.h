// All ranks of a run: few and small messages between all of them, and the source of the Groups that move tensors.
// Every function but rank(), size(), local_rank() and local_size() is collective: all ranks call it, in the same order.
// Implementations: self (one rank, no MPI) and mpi (MPI_COMM_WORLD, inside a Session). Failures of MPI throw
// std::runtime_error with its text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/groups.h"
#include "comm/session.h"
#include "mesh/mesh.h"

namespace shardplan::comm {

enum class WorldOp : std::uint8_t { sum, min, max };

class World {
public:
    World() = default;
    World(const World&) = delete;
    World& operator=(const World&) = delete;
    virtual ~World() = default;

    virtual std::int64_t rank() const = 0;
    virtual std::int64_t size() const = 0;
    /// Among the ranks on the same machine.
    virtual std::int64_t local_rank() const = 0;
    virtual std::int64_t local_size() const = 0;

    virtual void barrier() = 0;
    /// `bytes` of rank 0 replaces that of all others.
    virtual void broadcast(std::string& bytes) = 0;
    /// On rank 0 the strings of all ranks in order of rank; empty elsewhere.
    virtual std::vector<std::string> gather(const std::string& bytes) = 0;

    /// Element by element, combined in order of rank: the same bits everywhere. @pre the same size on all ranks.
    /// Integer sums throw base::OverflowError.
    void all_reduce(std::span<std::int64_t> values, WorldOp op);
    void all_reduce(std::span<double> values, WorldOp op);

    /// True on all ranks if `ok` is true on all ranks.
    bool agree(bool ok);
    /// True on all ranks if all passed the same value.
    bool same_everywhere(std::uint64_t value);

    /// This rank's view of the groups of `mesh`, rank i of the world = device i. Must not outlive the World.
    /// Throws std::runtime_error if the mesh has another number of devices than the world has ranks.
    std::unique_ptr<Groups> groups(const mesh::Mesh& mesh);
    std::unique_ptr<Groups> groups(const mesh::Mesh& mesh, const GroupOptions& options);

protected:
    /// all.size() = size() * own.size().
    virtual void all_gather(std::span<const std::byte> own, std::span<std::byte> all) = 0;
    virtual std::unique_ptr<Transport> transport(const mesh::Mesh& mesh, const GroupOptions& options) = 0;
};

/// A world of one rank; needs no MPI.
std::unique_ptr<World> make_self_world();

/// MPI_COMM_WORLD. @pre a Session exists and outlives it.
std::unique_ptr<World> make_mpi_world();

}  // namespace shardplan::comm
