// The table of reads and writes of variables, with copies on several workers.
// ranks: 1 2 3 4
#include <dist/multi_worker.hpp>

#include <doctest/doctest.h>

#include <conformance/variable_matrix.hpp>
#include <dist/comm/ring_all_reduce.hpp>

using conformance::Make;
using Workers = dist::MultiWorker<dist::RingAllReduce>;

TEST_CASE_TEMPLATE_INSTANTIATE(variable_matrix, Make<Workers, 1>, Make<Workers, 2>);
