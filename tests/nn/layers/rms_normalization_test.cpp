#include <dist/nn/layers/rms_normalization.hpp>

#include <cmath>
#include <vector>

#include <dist/core/static_shape.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/onednn/backend.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

#include <doctest/doctest.h>

#include "nn/place_layer.hpp"
#include "nn/run_network.hpp"

namespace nn = dist::nn;
using List = std::vector<double>;

namespace {

struct Options : nn::RMSNormalizationOptions {
  static constexpr double epsilon = 0.01;
};

}  // namespace

TEST_CASE("RMSNormalization divides rows of the last axis by the root of the mean of their squares") {
  using In = dist::StaticShape<2, 2>;
  using Layer = nn::RMSNormalization<>;
  dist_test::BoundLayer<Layer, In> layer;
  const List y = layer.forward({3, -4, 0, 0}, {{1, 2}});
  const double root = std::sqrt(12.5 + 1e-6);
  const List expected{3 / root, -8 / root, 0, 0};
  for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == doctest::Approx(expected[i]).epsilon(1e-14));
  static_cast<void>(layer.backward({1, 1, 5, 7}));
  CHECK(layer.gradients[0][0] == doctest::Approx(3 / root).epsilon(1e-14));
  CHECK(layer.gradients[0][1] == doctest::Approx(-4 / root).epsilon(1e-14));
  CHECK(Layer::On<In>::name == "rms_normalization");
  List scale(2);
  Layer::On<In>::initialize<0>(dist::TensorView<double>{scale.data(), dist::Shape{2}}, dist::RandomStream{1});
  CHECK(scale == List{1, 1});
}

TEST_CASE("gradients of RMSNormalization agree with central differences, and other back ends with the plain loops") {
  using Net = nn::Sequential<nn::Input<3, 5>, nn::Dense<19>, nn::RMSNormalization<>, nn::Dense<4>,
                             nn::RMSNormalization<Options>>;
  dist_test::check_gradients<Net, nn::Reference>(2);
  dist_test::check_against<Net, nn::OneDnn, nn::Reference>({3, 1, 0});
}
