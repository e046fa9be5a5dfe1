// The code of variables is the library's, so variable/ tests every type.
#define DIST_TEST_FEW_TYPES
#include <conformance/paired.hpp>

#include <doctest/doctest.h>
#include <conformance/neighbor_exchange.hpp>
#include <conformance/optimizer.hpp>
#include <conformance/strategy.hpp>
#include <conformance/strategy_methods.hpp>
#include <conformance/subgroups.hpp>
#include <conformance/variable.hpp>
#include <conformance/variable_matrix.hpp>
#include <conformance/variable_scatter.hpp>
#include <conformance/variable_values.hpp>

using conformance::Make;
using conformance::Paired;

static_assert(dist::VariableStore<conformance::PairedStore>);

TEST_CASE_TEMPLATE_INSTANTIATE(strategies, Make<Paired, 1>, Make<Paired, 2>, Make<Paired, 3>, Make<Paired, 4>);
TEST_CASE_TEMPLATE_INSTANTIATE(strategy_methods, Make<Paired, 1>, Make<Paired, 2>, Make<Paired, 3>, Make<Paired, 4>);
TEST_CASE_TEMPLATE_INSTANTIATE(variables, Make<Paired, 1>, Make<Paired, 2>, Make<Paired, 3>, Make<Paired, 4>);
TEST_CASE_TEMPLATE_INSTANTIATE(variable_matrix, Make<Paired, 1>, Make<Paired, 2>, Make<Paired, 3>, Make<Paired, 4>);
TEST_CASE_TEMPLATE_INSTANTIATE(variable_scatter, Make<Paired, 1>, Make<Paired, 2>, Make<Paired, 3>, Make<Paired, 4>);
TEST_CASE_TEMPLATE_INSTANTIATE(variable_values, Make<Paired, 1>, Make<Paired, 2>, Make<Paired, 3>, Make<Paired, 4>);
TEST_CASE_TEMPLATE_INSTANTIATE(optimizers, Make<Paired, 1>, Make<Paired, 2>, Make<Paired, 3>, Make<Paired, 4>);
TEST_CASE_TEMPLATE_INSTANTIATE(neighbor_exchanges, Make<Paired, 3>);
TEST_CASE_TEMPLATE_INSTANTIATE(neighbor_exchanges_in_place, Make<Paired, 3>);
TEST_CASE_TEMPLATE_INSTANTIATE(subgroups, Make<Paired, 3>);
