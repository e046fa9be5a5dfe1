#include <dist/nn/layers/group_normalization.hpp>

#include <array>

#include <dist/core/static_shape.hpp>
#include <dist/nn/reference/backend.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

namespace {

struct Three {
  static constexpr double epsilon = 3;
};
using Numbers = std::array<float, 4>;

}  // namespace

TEST_CASE("the input gradient is computed on request, and the other gradients do not change") {
  using Geometry = nn::detail::GroupGeometry<dist::StaticShape<2>, 1, false>;
  nn::detail::GroupNormalizationOperation<nn::Reference, Geometry, Three, float> operation;
  nn::Reference::State state;
  Numbers x{1, 3, 7, 5}, y{}, dy{1, 2, 3, 4}, dx{9, 9, 9, 9}, gamma{1, 1}, beta{0, 1}, of_gamma{}, of_beta{};
  const auto rows = [](Numbers& numbers) { return dist::TensorView<float>{numbers.data(), dist::Shape{2, 2}}; };
  const auto channels = [](Numbers& numbers) { return dist::TensorView<float>{numbers.data(), dist::Shape{2}}; };
  operation.forward(state, rows(x), {channels(gamma), channels(beta)}, rows(y));
  CHECK(y == Numbers{-0.5F, 1.5F, 0.5F, 0.5F});  // deviations of 1, and an epsilon of 3
  operation.backward<false>(state, rows(x), {channels(gamma), channels(beta)}, rows(y), rows(dy),
                            {channels(of_gamma), channels(of_beta)}, rows(dx));
  CHECK(dx == Numbers{9, 9, 9, 9});
  CHECK(of_gamma == Numbers{-0.5F + 1.5F, 1 - 2});
  CHECK(of_beta == Numbers{4, 6});
  const Numbers expected_gamma = of_gamma, expected_beta = of_beta;
  operation.backward<true>(state, rows(x), {channels(gamma), channels(beta)}, rows(y), rows(dy),
                           {channels(of_gamma), channels(of_beta)}, rows(dx));
  CHECK(of_gamma == expected_gamma);
  CHECK(of_beta == expected_beta);
  // (n - mean(n) - normalised * mean(n * normalised)) / 2, with n = dy and normalised = -0.5, 0.5 and 0.5, -0.5
  CHECK(dx[0] == doctest::Approx((1 - 1.5 + 0.5 * 0.25) / 2));
  CHECK(dx[3] == doctest::Approx((4 - 3.5 + 0.5 * -0.25) / 2));
}

TEST_CASE("GroupGeometry divides channels into groups, with or without the pixels") {
  using Image = dist::StaticShape<3, 4, 6>;
  CHECK(nn::detail::GroupGeometry<Image, 2, true>::pixels == 12);
  CHECK(nn::detail::GroupGeometry<Image, 1, false>::pixels == 1);
  CHECK(nn::detail::GroupGeometry<Image, 1, false>::channels == 6);
  CHECK(nn::detail::GroupGeometry<Image, 2, true>::group_size == 36);
}
