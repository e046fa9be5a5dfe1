#include <dist/nn/choice.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using dist::nn::detail::greater;
using dist::nn::detail::select;

TEST_CASE("select follows its condition, and greater returns NaN if a number is NaN") {
  CHECK(select(true, 1.0, 2.0) == 1);
  CHECK(select(false, 1.0F, 2.0F) == 2);
  CHECK(greater(-1.0, 2.0) == 2);
  CHECK(greater(3.0F, 2.0F) == 3);
  CHECK(std::isnan(greater(std::numeric_limits<float>::quiet_NaN(), 1.0F)));
  CHECK(std::isnan(greater(1.0F, std::numeric_limits<float>::quiet_NaN())));
}

using dist::nn::detail::inverse_root;
using dist::nn::detail::root;

TEST_CASE_TEMPLATE("root and inverse_root are exact to a few units in the last place over the whole range", T, float,
                   double) {
  const T smallest = std::numeric_limits<T>::denorm_min();
  const T largest = std::numeric_limits<T>::max();
  double worst = 0;
  const auto look_at = [&](T x) {
    const auto exact = std::sqrt(static_cast<long double>(x));
    const auto error = std::fabs(static_cast<double>(static_cast<long double>(inverse_root(x)) * exact - 1));
    const auto root_error = std::fabs(static_cast<double>(static_cast<long double>(root(x)) / exact - 1));
    worst = std::fmax(worst, std::fmax(error, root_error));
  };
  for (T x = smallest; x < largest / T(1.01); x = std::fmax(x * T(1.0093), x + smallest)) look_at(x);
  look_at(largest);
  CHECK(worst < 3 * static_cast<double>(std::numeric_limits<T>::epsilon()));
}

TEST_CASE_TEMPLATE("root and inverse_root of zero, infinity and NaN", T, float, double) {
  const T infinity = std::numeric_limits<T>::infinity();
  CHECK(root(T{0}) == T{0});
  CHECK(std::isfinite(inverse_root(T{0})));
  CHECK(root(infinity) == infinity);
  CHECK(inverse_root(infinity) == T{0});
  CHECK(std::isnan(root(std::numeric_limits<T>::quiet_NaN())));
  CHECK(std::isnan(inverse_root(std::numeric_limits<T>::quiet_NaN())));
}
