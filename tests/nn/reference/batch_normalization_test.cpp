#include <dist/nn/reference/batch_normalization.hpp>

#include <array>
#include <vector>

#include <doctest/doctest.h>

using List = std::vector<double>;
using Two = std::array<double, 2>;
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
  std::array<double, 4> sums{9, 9, 9, 9};
  Kernel{}.sums(state, rows(x), sums);
  CHECK(sums == std::array<double, 4>{7, 20, 1 + 4 + 16, 100 + 400 + 900});
  Kernel{}.sums(state, rows({}), sums);
  CHECK(sums == std::array<double, 4>{});
}

TEST_CASE("sums of floats are in double") {
  const std::vector<float> many(1 << 15, 4097.0F);
  std::array<double, 2> sums{};
  dist::nn::reference::BatchNormalization<1, float>{}.sums(
      state, dist::TensorView<const float>{many.data(), dist::Shape{many.size(), 1}}, sums);
  CHECK(sums[1] == 4097.0 * 4097.0 * (1 << 15));
}

TEST_CASE("(x - mean) * scale + shift") {
  List y(6);
  Kernel{}.forward(state, rows(x), Two{1, 2}, Two{3, 4}, Two{5, 6}, {y.data(), dist::Shape{3, 2}});
  CHECK(y == List{5, 38, 8, -82, 14, 118});
}

TEST_CASE("sums for the gradients, and the input's gradient") {
  std::array<double, 4> sums{};
  Kernel{}.gradient_sums(state, rows(x), rows(dy), Two{1, 2}, sums);
  CHECK(sums == std::array<double, 4>{6, 4, 0 + 2 + 9, -8 + 0 + 140});
  List dx(6);
  Kernel{}.input_gradient(state, rows(x), rows(dy), Two{1, 2}, Two{10, 1}, Two{2, 3}, Two{0.5, 0},
                          {dx.data(), dist::Shape{3, 2}});
  CHECK(dx == List{10.5, 23, 22.5, -66, 36.5, 89});
}
