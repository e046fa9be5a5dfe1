#include <dist/nn/layers/pool2d.hpp>

#include <vector>

#include <dist/core/tensor.hpp>
#include <dist/nn/reference/backend.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

namespace {

struct Negate {
  void forward(auto&, dist::TensorView<const float> x, dist::TensorView<float> y) { y[0] = -x[0]; }
  void input_gradient(auto&, dist::TensorView<const float>, dist::TensorView<const float> dy,
                      dist::TensorView<float> dx) {
    dx[0] = -dy[0];
  }
};

}  // namespace

TEST_CASE("PoolOperation computes the input gradient only on request") {
  nn::detail::PoolOperation<nn::Reference, Negate, float> operation;
  nn::Reference::State state;
  const dist::Tensor<float> x{dist::Shape{1, 1}, {3}};
  dist::Tensor<float> y{dist::Shape{1, 1}};
  dist::Tensor<float> dx{dist::Shape{1, 1}, {7}};
  operation.forward(state, x, {}, y);
  CHECK(y[0] == -3);
  operation.backward<false>(state, x, {}, y.view(), y, {}, dx);
  CHECK(dx[0] == 7);
  operation.backward<true>(state, x, {}, y.view(), y, {}, dx);
  CHECK(dx[0] == 3);
}
