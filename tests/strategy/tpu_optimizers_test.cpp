// The suite of optimizers on devices of XLA: what replica functions do that are run. nn/hlo/traced_optimizer_test.cpp compares
// compiled steps with these.
#include <dist/tpu.hpp>

#include <doctest/doctest.h>

#include <cstdint>

#include <conformance/make_strategy.hpp>
#include <conformance/optimizer.hpp>

using conformance::Make;
using Tpu = dist::Tpu<>;

namespace {
const bool has_four = (dist::pjrt::set_process_options({.values = {{"cpu_device_count", std::int64_t{4}}}}), true);
}

TEST_CASE_TEMPLATE_INSTANTIATE(optimizers, Make<Tpu, 1>, Make<Tpu, 2>, Make<Tpu, 4>);

TEST_CASE("the suites have as many devices as replicas") {
  CHECK(has_four);
  CHECK(dist::Xla::count() == 4);
}
