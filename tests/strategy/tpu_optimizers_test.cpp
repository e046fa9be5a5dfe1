// The suite of optimizers on XLA devices, in replica functions of `run`. nn/hlo/traced_optimizer_test.cpp compares
// compiled steps with these.
#include <dist/tpu.hpp>

#include <doctest/doctest.h>

#include <conformance/make_strategy.hpp>
#include <conformance/optimizer.hpp>
#include <support/four_xla_cpus.hpp>

using conformance::Make;
using Tpu = dist::Tpu<>;

TEST_CASE_TEMPLATE_INSTANTIATE(optimizers, Make<Tpu, 1>, Make<Tpu, 2>, Make<Tpu, 4>);

TEST_CASE("the suites have as many devices as replicas") { CHECK(dist::Xla::count() == 4); }
