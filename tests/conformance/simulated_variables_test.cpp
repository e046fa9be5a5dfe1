// Variables with copies on several workers on a simulated network. A network transfers only bytes, so multi_worker/
// tests variables of every type, and of more sizes.
#define DIST_TEST_FEW_TYPES
#define DIST_TEST_FEW_ELEMENTS
#include <conformance/simulated.hpp>

#include <doctest/doctest.h>

#include <conformance/variable.hpp>
#include <conformance/variable_matrix.hpp>
#include <conformance/variable_scatter.hpp>
#include <conformance/variable_values.hpp>
#include <conformance/variable_whole.hpp>

using conformance::Make;
using Workers = conformance::SimulatedStrategy;

TEST_CASE_TEMPLATE_INSTANTIATE(variables, Make<Workers, 1>, Make<Workers, 2>);
TEST_CASE_TEMPLATE_INSTANTIATE(variable_matrix, Make<Workers, 1>, Make<Workers, 2>);
TEST_CASE_TEMPLATE_INSTANTIATE(variable_scatter, Make<Workers, 1>, Make<Workers, 2>);
TEST_CASE_TEMPLATE_INSTANTIATE(variable_values, Make<Workers, 1>, Make<Workers, 2>);
TEST_CASE_TEMPLATE_INSTANTIATE(variable_whole, Make<Workers, 1>, Make<Workers, 2>);
