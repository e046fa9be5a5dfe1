#include <dist/nn/reference/layers.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <dist/core/tensor.hpp>
#include <dist/nn/layer_random.hpp>
#include <dist/nn/layers/activate.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/embedding.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/onednn/backend.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

#include "nn/run_network.hpp"

namespace nn = dist::nn;
using List = std::vector<float>;

TEST_CASE("elementwise functions work in separate memory and in place") {
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

// tests/nn/layers checks the values; the second layer here needs the first's input gradient.
TEST_CASE("gradients of Dense agree with central differences") {
  using Net = nn::Sequential<nn::Input<4>, nn::Dense<18, nn::Relu>, nn::Dense<3>>;
  using One = nn::Sequential<nn::Input<1>, nn::Dense<1>, nn::Dense<1>>;
  for (const std::size_t rows : std::initializer_list<std::size_t>{0, 1, 3}) {
    CAPTURE(rows);
    dist_test::check_gradients<Net, nn::Reference>(rows);
    dist_test::check_gradients<One, nn::Reference>(rows);
  }
}

TEST_CASE("the table gradient of Embedding agrees with central differences, and oneDNN with the reference back end") {
  using Net = nn::Sequential<nn::Input<3>, nn::Embedding<5, 2>, nn::Flatten, nn::Dense<2>>;
  const std::vector<double> ids{0, 4, 4, 2, 1, 4};
  auto parameters = dist_test::numbers(Net::padded_count, 1);
  nn::Workspace<Net, nn::Reference, double> workspace;
  const auto analytic = dist_test::pass(workspace, parameters, ids);
  for (std::size_t i = 0; i < 10; ++i) {
    constexpr double step = 1e-5;
    const double before = parameters[i];
    parameters[i] = before + step;
    const double above = dist_test::pass(workspace, parameters, ids).loss;
    parameters[i] = before - step;
    const double below = dist_test::pass(workspace, parameters, ids).loss;
    parameters[i] = before;
    CHECK(analytic.gradients[i] == doctest::Approx((above - below) / (2 * step)).epsilon(1e-7));
  }
  nn::Workspace<Net, nn::OneDnn, float> by_onednn;
  const auto mine = dist_test::pass(by_onednn, parameters, ids);
  CHECK(dist_test::difference(mine.outputs, analytic.outputs) < 1e-5);
  CHECK(dist_test::difference(mine.gradients, analytic.gradients) < 1e-5);
}

namespace {

/// The initial state of a layer.
dist::Tensor<float> seeded(std::uint64_t seed) {
  dist::Tensor<float> values{nn::LayerRandom::state.shape};
  nn::LayerRandom::initialize(values.view(), seed);
  return values;
}

}  // namespace

TEST_CASE("Dropout drops the given fraction, scales the rest, and applies the same mask to the gradient") {
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

TEST_CASE("dropping depends on the element's number, not on where a part starts") {
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

namespace {

/// Two sequences of two elements, two heads of one column.
struct Geometry {
  static constexpr nn::AttentionSizes sizes{.length = 2, .heads = 2, .key_heads = 2, .width = 1, .is_causal = false};
};

}  // namespace

TEST_CASE("each head of each sequence attends with its own columns") {
  const double third = std::log(3.0);
  const dist::Shape shape{4, 2};
  // Query times key is log(3) for the second element of the first sequence in head 1, and 0 for all others.
  const dist::Tensor<double> queries{shape, {0, 1, 0, 1, 0, 0, 0, 0}};
  const dist::Tensor<double> keys{shape, {0, 0, 0, third, 0, third, 0, third}};
  const dist::Tensor<double> values{shape, {1, 10, 3, 50, 5, 100, 9, 500}};
  dist::Tensor<double> outputs{shape};
  int state = 0;
  nn::reference::Attention<Geometry, double> attention;
  attention.forward(state, queries, keys, values, outputs);
  const double expected[] = {2, 40, 2, 40, 7, 300, 7, 300};
  for (std::size_t i = 0; i < 8; ++i) CHECK(outputs[i] == doctest::Approx(expected[i]));

  // dO = 1 everywhere: the gradient of a value is the sum of its weights, and the gradient of the queries of head 1 of
  // sequence 0 is 0.25 * 0.75 * (50 - 10) * log(3).
  dist::Tensor<double> ones{shape};
  for (double& element : ones.elements()) element = 1;
  dist::Tensor<double> dq{shape}, dk{shape}, dv{shape};
  attention.input_gradients(state, queries, keys, values, std::as_const(outputs), ones, dq, dk, dv);
  const double of_values[] = {1, 0.5, 1, 1.5, 1, 1, 1, 1};
  for (std::size_t i = 0; i < 8; ++i) CHECK(dv[i] == doctest::Approx(of_values[i]));
  CHECK(dq[1] == doctest::Approx(7.5 * third));
  CHECK(dq[0] == 0);
  CHECK(dk[3] == doctest::Approx(2 * 7.5));
  CHECK(dk[1] == doctest::Approx(-2 * 7.5));
}
