#include <dist/comm/message_ring.hpp>
// ranks: 1 2 3 4

#include <dist/comm/ring_all_reduce.hpp>

#include <doctest/doctest.h>

#include <conformance/process_collectives.hpp>
#include <support/mpi_group.hpp>

static_assert(dist::CrossDeviceOps<dist::RingAllReduce, dist::mpi::Communicator>);

TEST_CASE_TEMPLATE_INSTANTIATE(process_collectives, support::MpiGroup<dist::RingAllReduce>);
