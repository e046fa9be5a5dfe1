#include <dist/nn/choice.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using dist::nn::detail::greater;
using dist::nn::detail::select;

TEST_CASE("a choice follows its condition, and the greater of two numbers is NaN where one is") {
  CHECK(select(true, 1.0, 2.0) == 1);
  CHECK(select(false, 1.0F, 2.0F) == 2);
  CHECK(greater(-1.0, 2.0) == 2);
  CHECK(greater(3.0F, 2.0F) == 3);
  CHECK(std::isnan(greater(std::numeric_limits<float>::quiet_NaN(), 1.0F)));
  CHECK(std::isnan(greater(1.0F, std::numeric_limits<float>::quiet_NaN())));
}
