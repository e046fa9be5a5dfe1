#include <dist/core/square_root.hpp>

#include <cmath>
#include <initializer_list>
#include <limits>

#include <doctest/doctest.h>

TEST_CASE("square_root equals std::sqrt") {
  for (const double x : {0.0, 1.0, 2.0, 1e-300, 1e300, 0.1, std::numeric_limits<double>::infinity()})
    CHECK(dist::detail::square_root(x) == std::sqrt(x));
  CHECK(std::isnan(dist::detail::square_root(-1.0)));
  for (const float x : {0.1F, 2.0F, 3.0F, 1e-30F, 1.17549435e-38F})
    CHECK(static_cast<float>(dist::detail::square_root(x)) == std::sqrt(x));  // rounding twice gives the same result
}
