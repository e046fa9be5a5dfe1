#include <dist/nn/reference/batch_normalization.hpp>

#include <vector>

#include <doctest/doctest.h>

using List = std::vector<double>;
using Kernel = dist::nn::reference::BatchNormalization<2, double>;

namespace {
struct NoState {
} state;

dist::TensorView<const double> rows(const List& elements) {
  return {elements.data(), dist::Shape{elements.size() / 2, 2}};
}
const List x{1, 10, 2, -20, 4, 30};
const List dy{1, -1, 2, 0, 3, 5};
}  // namespace

TEST_CASE("sums and sums of squares per channel") {
  double sum[2] = {9, 9};
  double squares[2] = {9, 9};
  Kernel{}.sums(state, rows(x), sum, squares);
  CHECK(sum[0] == 7);
  CHECK(sum[1] == 20);
  CHECK(squares[0] == 1 + 4 + 16);
  CHECK(squares[1] == 100 + 400 + 900);
  Kernel{}.sums(state, rows({}), sum, squares);
  CHECK(sum[1] + squares[1] == 0);
}

TEST_CASE("sums of floats are in double") {
  const std::vector<float> many(1 << 15, 4097.0F);
  double sum[1];
  double squares[1];
  dist::nn::reference::BatchNormalization<1, float>{}.sums(
      state, dist::TensorView<const float>{many.data(), dist::Shape{many.size(), 1}}, sum, squares);
  CHECK(squares[0] == 4097.0 * 4097.0 * (1 << 15));
}

TEST_CASE("(x - mean) * scale + shift") {
  List y(6);
  Kernel{}.forward(state, rows(x), {1, 2}, {3, 4}, {5, 6}, {y.data(), dist::Shape{3, 2}});
  CHECK(y == List{5, 38, 8, -82, 14, 118});
}

TEST_CASE("sums for the gradients, and the input's gradient") {
  double sum[2];
  double of_x[2];
  Kernel{}.gradient_sums(state, rows(x), rows(dy), {1, 2}, sum, of_x);
  CHECK(sum[0] == 6);
  CHECK(sum[1] == 4);
  CHECK(of_x[0] == 0 + 2 + 9);
  CHECK(of_x[1] == -8 + 0 + 140);
  List dx(6);
  Kernel{}.input_gradient(state, rows(x), rows(dy), {1, 2}, {10, 1}, {2, 3}, {0.5, 0}, {dx.data(), dist::Shape{3, 2}});
  CHECK(dx == List{10.5, 23, 22.5, -66, 36.5, 89});
}
