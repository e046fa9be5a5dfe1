// ranks: 1 2 3 4
#include <dist/multi_worker.hpp>

#include <doctest/doctest.h>

#include <conformance/cross_device_ops.hpp>
#include <dist/comm/mpi/mpi_all_reduce.hpp>

TEST_CASE_TEMPLATE_INSTANTIATE(cross_device_ops, dist::MultiWorker<dist::MpiAllReduce>);
