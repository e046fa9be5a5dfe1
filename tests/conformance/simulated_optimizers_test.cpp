// Optimizers whose slots are divided among several workers on a simulated network.
#include <conformance/simulated.hpp>

#include <doctest/doctest.h>

#include <conformance/make_strategy.hpp>
#include <conformance/optimizer.hpp>

using conformance::Make;
using Workers = conformance::SimulatedStrategy;

TEST_CASE_TEMPLATE_INSTANTIATE(optimizers, Make<Workers, 1>, Make<Workers, 2>);
