#include <dist/nn/optimizers/inverse_root.hpp>

#include <cmath>
#include <limits>

#include <doctest/doctest.h>

using dist::nn::detail::inverse_root;
using dist::nn::detail::root;

TEST_CASE_TEMPLATE("within a few units in the last place over the whole range", T, float, double) {
  const T smallest = std::numeric_limits<T>::min();
  const T largest = std::numeric_limits<T>::max();
  double worst = 0;
  for (T x = smallest; x < largest / T(1.01); x *= T(1.0093)) {
    const auto exact = std::sqrt(static_cast<long double>(x));
    const auto error = std::fabs(static_cast<double>(static_cast<long double>(inverse_root(x)) * exact - 1));
    const auto root_error = std::fabs(static_cast<double>(static_cast<long double>(root(x)) / exact - 1));
    worst = std::fmax(worst, std::fmax(error, root_error));
  }
  CHECK(worst < 3 * static_cast<double>(std::numeric_limits<T>::epsilon()));
}

TEST_CASE_TEMPLATE("zero, the smallest numbers and NaN", T, float, double) {
  CHECK(root(T{0}) == T{0});
  CHECK(std::isfinite(inverse_root(T{0})));
  for (T x = std::numeric_limits<T>::min(); x > T{0}; x /= T{2}) {
    CHECK(std::isfinite(inverse_root(x)));
    CHECK(root(x) >= T{0});
    CHECK(root(x) <= std::sqrt(x) * T(1.0001));
  }
  CHECK(std::isnan(root(std::numeric_limits<T>::quiet_NaN())));
}
