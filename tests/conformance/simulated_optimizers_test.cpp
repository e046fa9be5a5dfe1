// Optimizers whose slots are shared out among several workers, which a simulated network joins.
#include <conformance/simulated.hpp>

#include <doctest/doctest.h>

#include <conformance/make_strategy.hpp>
#include <conformance/optimizer.hpp>

using conformance::Make;
using Workers = conformance::SimulatedStrategy;

TEST_CASE_TEMPLATE_INSTANTIATE(optimizers, Make<Workers, 1>, Make<Workers, 2>);
