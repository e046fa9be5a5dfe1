#include <dist/nn/layers/group_normalization.hpp>

#include <vector>

#include <dist/core/static_shape.hpp>

#include <doctest/doctest.h>

#include "nn/place_layer.hpp"

namespace nn = dist::nn;
using List = std::vector<double>;

namespace {

struct Small : nn::GroupNormalizationOptions {
  static constexpr double epsilon = 1e-12;
};

}  // namespace

TEST_CASE("GroupNormalization normalises each group over the pixels of an image") {
  using In = dist::StaticShape<1, 2, 3>;
  // Instance normalisation: each channel over two pixels.
  dist_test::BoundLayer<nn::GroupNormalization<3, Small>, In> instance;
  const List y = instance.forward({1, 5, 7, 3, 1, 6}, {{1, 2, 3}, {0, 0, 10}});
  const List expected{-1, 2, 3 + 10, 1, -2, -3 + 10};
  for (std::size_t i = 0; i < 6; ++i) CHECK(y[i] == doctest::Approx(expected[i]).epsilon(1e-9));

  // One group: 1, 1, 1, 3, 3, 3 has mean 2 and variance 1.
  dist_test::BoundLayer<nn::GroupNormalization<1, Small>, In> all;
  const List together = all.forward({1, 3, 1, 3, 1, 3}, {{1, 2, 3}, {0, 0, 10}});
  const List signs{-1, 2, -3 + 10, 1, -2, 3 + 10};
  for (std::size_t i = 0; i < 6; ++i) CHECK(together[i] == doctest::Approx(signs[i]).epsilon(1e-9));
  CHECK(nn::GroupNormalization<3>::On<In>::name == "group_normalization");
}
