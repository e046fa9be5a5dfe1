// State that outlives a run, with copies on several workers.
// ranks: 1 2 4
#include <dist/multi_worker.hpp>

#include <doctest/doctest.h>

#include <conformance/variable_whole.hpp>
#include <dist/comm/ring_all_reduce.hpp>

using conformance::Make;
using Workers = dist::MultiWorker<dist::RingAllReduce>;

TEST_CASE_TEMPLATE_INSTANTIATE(variable_whole, Make<Workers, 1>, Make<Workers, 2>);
