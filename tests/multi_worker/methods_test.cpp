// What a strategy's methods do with the values of several workers.
// ranks: 1 2 3 4
#include <dist/multi_worker.hpp>

#include <doctest/doctest.h>

#include <conformance/strategy_methods.hpp>
#include <dist/comm/ring_all_reduce.hpp>

using conformance::Make;
using Workers = dist::MultiWorker<dist::RingAllReduce>;

TEST_CASE_TEMPLATE_INSTANTIATE(strategy_methods, Make<Workers, 1>, Make<Workers, 2>);
