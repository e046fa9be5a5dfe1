#include <dist/nn/onednn/pooling2d.hpp>

#include <string_view>

#include <dist/core/static_shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/geometry.hpp>
#include <dist/nn/onednn/state.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

namespace {

/// The mean of all elements of the window, those of the padding among them.
struct MeanWithPadding {
  static constexpr auto algorithm = dnnl::algorithm::pooling_avg_include_padding;
  static constexpr std::string_view forward_name = "a pooling";
  static constexpr std::string_view backward_name = "the gradient of a pooling";
  static constexpr bool has_places = false;
};

}  // namespace

TEST_CASE("any pooling of oneDNN") {
  using Geometry = nn::PoolGeometry<dist::StaticShape<1, 3, 1>, 2, 2, nn::Same>;
  nn::onednn::State state;
  nn::onednn::Pooling2D<Geometry, float, MeanWithPadding> pool;
  dist::Tensor<float> x{dist::Shape{1, 1, 3, 1}};
  for (std::size_t i = 0; i < 3; ++i) x[i] = static_cast<float>(4 * i + 4);
  dist::Tensor<float> y{dist::Shape{1, 1, 2, 1}};
  dist::Tensor<float> dx{x.shape()};
  pool.forward(state, x, y);
  CHECK(y[0] == 3);  // (4 + 8 + 0 + 0) / 4
  CHECK(y[1] == 3);  // (12 + 0 + 0 + 0) / 4
  pool.input_gradient(state, x, y.view(), dx);
  CHECK(dx[0] == 0.75F);
  CHECK(dx[2] == 0.75F);
}
