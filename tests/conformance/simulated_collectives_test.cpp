// Collectives of the replicas of several workers on a simulated network.
#define DIST_TEST_FEW_ELEMENTS
#include <conformance/simulated.hpp>

#include <doctest/doctest.h>

#include <conformance/cross_device_ops.hpp>
#include <conformance/make_strategy.hpp>
#include <conformance/neighbor_exchange.hpp>
#include <conformance/subgroups.hpp>

using conformance::Make;
using Workers = conformance::SimulatedStrategy;

TEST_CASE_TEMPLATE_INSTANTIATE(cross_device_ops, Workers);
TEST_CASE_TEMPLATE_INSTANTIATE(neighbor_exchanges, Make<Workers, 1>, Make<Workers, 2>);
TEST_CASE_TEMPLATE_INSTANTIATE(neighbor_exchanges_in_place, Make<Workers, 1>, Make<Workers, 2>);
TEST_CASE_TEMPLATE_INSTANTIATE(subgroups, Make<Workers, 1>, Make<Workers, 2>);
