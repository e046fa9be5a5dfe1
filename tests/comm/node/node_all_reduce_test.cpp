#include <dist/comm/node/node_all_reduce.hpp>
// ranks: 1 2 3 4

#include <dist/comm/mpi/mpi_all_reduce.hpp>

#include <doctest/doctest.h>

#include <conformance/process_collectives.hpp>
#include <support/node_group.hpp>

static_assert(dist::SharesWindow<dist::NodeCommunicator>);
static_assert(dist::CrossDeviceOps<dist::NodeAllReduce, dist::NodeCommunicator>);

// With one node, all collectives work in its memory.
TEST_CASE_TEMPLATE_INSTANTIATE(process_collectives, support::NodeGroup<dist::MpiAllReduce>);
