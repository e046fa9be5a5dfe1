// The suites of strategies and variables on XLA devices, in replica functions of `run`.
#include <dist/tpu.hpp>

#include <doctest/doctest.h>

#include <conformance/strategy.hpp>
#include <conformance/strategy_methods.hpp>
#include <conformance/variable.hpp>
#include <conformance/variable_matrix.hpp>
#include <conformance/variable_scatter.hpp>
#include <conformance/variable_values.hpp>
#include <conformance/variable_whole.hpp>
#include <support/four_xla_cpus.hpp>

using conformance::Make;
using Tpu = dist::Tpu<>;
using Mirrored = dist::Mirrored<dist::XlaAllReduce>;
using One = dist::OneDevice<dist::Xla>;

TEST_CASE_TEMPLATE_INSTANTIATE(strategies, Make<Tpu, 1>, Make<Tpu, 2>, Make<Tpu, 4>, Make<Mirrored, 2>, Make<One>);
TEST_CASE_TEMPLATE_INSTANTIATE(strategy_methods, Make<Tpu, 1>, Make<Tpu, 2>, Make<Tpu, 4>);
TEST_CASE_TEMPLATE_INSTANTIATE(variables, Make<Tpu, 1>, Make<Tpu, 2>, Make<Tpu, 4>, Make<One>);
TEST_CASE_TEMPLATE_INSTANTIATE(variable_matrix, Make<Tpu, 1>, Make<Tpu, 2>, Make<Tpu, 4>, Make<One>);

TEST_CASE_TEMPLATE_INSTANTIATE(variable_scatter, Make<Tpu, 2>);
TEST_CASE_TEMPLATE_INSTANTIATE(variable_values, Make<Tpu, 2>);
TEST_CASE_TEMPLATE_INSTANTIATE(variable_whole, Make<Tpu, 2>);

TEST_CASE("the suites have as many devices as replicas") { CHECK(dist::Xla::count() == 4); }
