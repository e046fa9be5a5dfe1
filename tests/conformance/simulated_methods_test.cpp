// A strategy's methods with values of several workers on a simulated network.
#include <conformance/simulated.hpp>

#include <doctest/doctest.h>

#include <conformance/strategy_methods.hpp>

using conformance::Make;
using Workers = conformance::SimulatedStrategy;

TEST_CASE_TEMPLATE_INSTANTIATE(strategy_methods, Make<Workers, 1>, Make<Workers, 2>);
