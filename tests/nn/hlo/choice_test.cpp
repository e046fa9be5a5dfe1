#include <dist/nn/hlo/choice.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <tuple>

#include <hlo/run.hpp>

using dist::Tensor;
using Floats = dist::hlo::Traced<float, 3>;

TEST_CASE("select chooses element by element, and greater returns NaN if either element is NaN") {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  const auto [choice, most] = testing::run<Floats, Floats>(
      1,
      [](auto a, auto b) {
        return std::tuple{select(a < b, a, b * b), greater(a, b)};
      },
      Tensor<float>{{3}, {1, 5, nan}}, Tensor<float>{{3}, {2, 3, 4}});
  CHECK(choice == Tensor<float>{{3}, {1, 9, 16}});
  CHECK(most[0] == 2);
  CHECK(most[1] == 5);
  CHECK(std::isnan(most[2]));
}
