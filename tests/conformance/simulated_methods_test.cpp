// What a strategy's methods do with the values of several workers, which a simulated network joins.
#include <conformance/simulated.hpp>

#include <doctest/doctest.h>

#include <conformance/strategy_methods.hpp>

using conformance::Make;
using Workers = conformance::SimulatedStrategy;

TEST_CASE_TEMPLATE_INSTANTIATE(strategy_methods, Make<Workers, 1>, Make<Workers, 2>);
