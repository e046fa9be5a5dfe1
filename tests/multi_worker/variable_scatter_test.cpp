// ranks: 1 2 3 4
#include <dist/multi_worker.hpp>

#include <doctest/doctest.h>

#include <conformance/variable_scatter.hpp>
#include <dist/comm/mpi/mpi_all_reduce.hpp>

using conformance::Make;
using Workers = dist::MultiWorker<dist::MpiAllReduce>;

TEST_CASE_TEMPLATE_INSTANTIATE(variable_scatter, Make<Workers, 1>, Make<Workers, 2>);
