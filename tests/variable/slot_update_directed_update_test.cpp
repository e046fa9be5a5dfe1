#include <dist/variable/slot_update.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

using dist::detail::sum_of_squares;
using dist::detail::trust_ratio;

namespace {

/// The direction is twice the gradient; the slot accumulates gradients.
struct Twice {
  static constexpr std::array<std::string_view, 1> slots{"sum"};
  static float direction(float gradient, float* slot) {
    slot[0] += gradient;
    return 2 * gradient;
  }
};

}  // namespace

TEST_CASE("the first pass writes directions in place of weights, and changes the slots") {
  std::vector<float> directions{9, 9}, sums{1, 2};
  const auto update = dist::detail::direction_of(dist::SlotUpdate<Twice, float>{{}, {sums.data(), nullptr}});
  for (std::size_t i = 0; i < 2; ++i) directions[i] = update(i, directions[i], 0.5F);
  CHECK(directions == std::vector<float>{1, 1});
  CHECK(sums == std::vector<float>{1.5F, 2.5F});
}

TEST_CASE("the trust ratio uses the norms after decay, and is 1 if one is 0, as in Keras") {
  CHECK(trust_ratio(16, 4, 0) == 2);
  CHECK(trust_ratio(16, 4, 0.25) == 1.5);
  CHECK(trust_ratio(0, 4, 0) == 1);
  CHECK(trust_ratio(16, 0, 0) == 1);
  CHECK(trust_ratio(4, std::nan(""), 0) == 1);
}

TEST_CASE("any number of squares is summed") {
  std::vector<float> numbers;
  double expected = 0;
  for (int i = 0; i < 29; ++i) {
    CHECK(sum_of_squares(std::span<const float>{numbers}) == expected);
    numbers.push_back(static_cast<float>(i));
    expected += i * i;
  }
}
