#include <dist/hlo/pending_number.hpp>

#include <doctest/doctest.h>

#include <type_traits>

#include <dist/core/future.hpp>
#include <dist/core/tensor.hpp>
#include <dist/device/pjrt/buffer.hpp>

#include "run.hpp"

using Number = dist::hlo::PendingNumber<float>;

static_assert(dist::Future<Number>);
static_assert(std::is_same_v<Number::Reduced, float>);

TEST_CASE("a number that a device has is waited for, and read as often as one likes") {
  const Number number{dist::pjrt::upload(testing::cpus(1), 0, dist::Tensor<float>{dist::Shape{}, {2.5F}})};
  number.wait();
  CHECK(number.is_done());
  const Number copy = number;
  CHECK(copy.value() == 2.5F);
  CHECK(2 * number == 5);
}
