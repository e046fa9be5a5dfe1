#include <dist/nn/reference/dropout.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include <dist/core/tensor.hpp>
#include <dist/nn/layer_random.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

namespace {

/// The state that a layer starts with.
dist::Tensor<float> seeded(std::uint64_t seed) {
  dist::Tensor<float> values{nn::LayerRandom::state.shape};
  nn::LayerRandom::initialize(values.view(), seed);
  return values;
}

}  // namespace

TEST_CASE("Dropout drops its share, scales the rest, and does the same to the gradient") {
  int state = 0;
  constexpr std::size_t size = 40'000;
  dist::Tensor<double> x{dist::Shape{size}};
  for (std::size_t i = 0; i < size; ++i) x[i] = static_cast<double>(i + 1);
  dist::Tensor<double> y{x.shape()};
  dist::Tensor<double> dx{x.shape()};
  nn::reference::Dropout<3, 10, double> dropout;
  auto random = seeded(4);
  dropout.forward(state, random.view(), 0, x, y);
  std::size_t dropped = 0;
  for (std::size_t i = 0; i < size; ++i) {
    if (y[i] == 0) ++dropped;
    CHECK((y[i] == 0 || y[i] == doctest::Approx(x[i] / 0.7).epsilon(1e-15)));
  }
  // Four standard deviations of a binomial distribution.
  CHECK(std::abs(static_cast<double>(dropped) - 0.3 * size) < 4 * std::sqrt(0.3 * 0.7 * size));
  dropout.input_gradient(state, x, dx);
  CHECK(std::equal(dx.data(), dx.data() + size, y.data()));

  dropout.forward(state, x, y);
  CHECK(std::equal(y.data(), y.data() + size, x.data()));
  dropout.input_gradient(state, x, dx);
  CHECK(std::equal(dx.data(), dx.data() + size, x.data()));
}

TEST_CASE("an element is dropped or not by its number, wherever a part starts") {
  int state = 0;
  dist::Tensor<float> ones{dist::Shape{101}};
  for (float& element : ones.elements()) element = 1;
  dist::Tensor<float> all{ones.shape()};
  nn::reference::Dropout<1, 2, float> dropout;
  dropout.forward(state, seeded(9).view(), 5, ones, all);
  for (const std::size_t first : {std::size_t{0}, std::size_t{1}, std::size_t{40}, std::size_t{100}}) {
    dist::Tensor<float> part{dist::Shape{101 - first}};
    dropout.forward(state, seeded(9).view(), 5 + first, ones.view().rows(first, 101 - first), part);
    CHECK(std::equal(part.data(), part.data() + part.size(), all.data() + first));
  }
}
