// Subgroups whose members are replicas of several processes.
#include <dist/multi_worker.hpp>
// ranks: 1 2 3 4

#include <conformance/make_strategy.hpp>
#include <conformance/subgroups.hpp>
#include <dist/comm/ring_all_reduce.hpp>

#include <doctest/doctest.h>

using conformance::Make;
using Workers = dist::MultiWorker<dist::RingAllReduce>;

TEST_CASE_TEMPLATE_INSTANTIATE(subgroups, Make<Workers, 1>, Make<Workers, 2>);
