// For tests that run under mpirun (link shardplan_mpi_test_main, which provides main): the world of all ranks.
// All ranks run the same cases in the same order; the test fails if it fails on any rank. A CHECK that fails on one
// rank goes on; a failed REQUIRE or an exception ends all ranks at once, since the others might wait for this one.
#pragma once

#include "comm/communicator.h"

namespace shardplan::test {

comm::World& mpi_world();

}  // namespace shardplan::test
