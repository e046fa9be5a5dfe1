// Variables of a ParameterServer, with copies on the coordinator. Their scatter operations are refused.
#define DIST_TEST_FEW_ELEMENTS
#include <conformance/served.hpp>

#include <doctest/doctest.h>

#include <conformance/make_strategy.hpp>
#include <conformance/variable.hpp>
#include <conformance/variable_matrix.hpp>
#include <conformance/variable_values.hpp>
#include <conformance/variable_whole.hpp>

using conformance::Make;
using conformance::Served;

TEST_CASE_TEMPLATE_INSTANTIATE(variables, Make<Served<2>>);
TEST_CASE_TEMPLATE_INSTANTIATE(variable_matrix, Make<Served<1>>, Make<Served<2>>);
TEST_CASE_TEMPLATE_INSTANTIATE(variable_values, Make<Served<2>>);
TEST_CASE_TEMPLATE_INSTANTIATE(variable_whole, Make<Served<2>>);
