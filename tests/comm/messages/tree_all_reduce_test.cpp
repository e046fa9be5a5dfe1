#include <dist/comm/messages/tree_all_reduce.hpp>
// ranks: 1 2 3 4
// optimised

#include <doctest/doctest.h>

#include <conformance/process_collectives.hpp>
#include <conformance/work_memory.hpp>
#include <support/mpi_group.hpp>

static_assert(dist::CrossDeviceOps<dist::TreeAllReduce, dist::mpi::Communicator>);

TEST_CASE_TEMPLATE_INSTANTIATE(process_collectives, support::MpiGroup<dist::TreeAllReduce>);
TEST_CASE_TEMPLATE_INSTANTIATE(work_memory, support::MpiGroup<dist::TreeAllReduce>);
