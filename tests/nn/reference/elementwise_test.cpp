#include <dist/nn/reference/elementwise.hpp>

#include <vector>

#include <doctest/doctest.h>

namespace nn = dist::nn;
using List = std::vector<float>;

TEST_CASE("elementwise functions, out of place and in place") {
  int state = 0;
  nn::reference::Elementwise<nn::Relu, float> relu;
  nn::reference::Elementwise<nn::Linear, float> linear;
  const List x{-1, 2, -3};
  List y(3);
  List dy{10, 20, 30};
  List dx(3);
  const dist::Shape shape{3};
  const auto view = [&](List& list) { return dist::TensorView<float>{list.data(), shape}; };
  relu.forward(state, dist::TensorView<const float>{x.data(), shape}, view(y));
  CHECK(y == List{0, 2, 0});
  relu.input_gradient(state, view(y), view(dy), view(dx));
  CHECK(dx == List{0, 20, 0});
  linear.input_gradient(state, view(y), view(dy), view(dx));
  CHECK(dx == List{10, 20, 30});
  linear.input_gradient(state, view(y), view(dy), view(dy));
  CHECK(dy == List{10, 20, 30});
  relu.input_gradient(state, view(y), view(dy), view(dy));
  CHECK(dy == List{0, 20, 0});
}
