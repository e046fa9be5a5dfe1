#include <dist/comm/messages/halving_doubling_all_reduce.hpp>
// ranks: 1 2 3 4
// optimised

#include <doctest/doctest.h>

#include <conformance/process_collectives.hpp>
#include <conformance/work_memory.hpp>
#include <support/mpi_group.hpp>

static_assert(dist::CrossDeviceOps<dist::HalvingDoublingAllReduce, dist::mpi::Communicator>);

TEST_CASE_TEMPLATE_INSTANTIATE(process_collectives, support::MpiGroup<dist::HalvingDoublingAllReduce>);
TEST_CASE_TEMPLATE_INSTANTIATE(work_memory, support::MpiGroup<dist::HalvingDoublingAllReduce>);
