#include <dist/nn/reference/attention.hpp>

#include <cmath>
#include <cstddef>
#include <utility>

#include <dist/core/tensor.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

namespace {

/// Two sequences of two elements, two heads of one column.
struct Geometry {
  static constexpr std::size_t length = 2;
  static constexpr std::size_t heads = 2;
  static constexpr std::size_t width = 1;
  static constexpr bool is_causal = false;
};

}  // namespace

TEST_CASE("each head of each sequence attends by its own columns") {
  const double third = std::log(3.0);
  const dist::Shape shape{4, 2};
  // Query times key is log(3) for the second element of the first sequence in head 1; all others are 0.
  const dist::Tensor<double> queries{shape, {0, 1, 0, 1, 0, 0, 0, 0}};
  const dist::Tensor<double> keys{shape, {0, 0, 0, third, 0, third, 0, third}};
  const dist::Tensor<double> values{shape, {1, 10, 3, 50, 5, 100, 9, 500}};
  dist::Tensor<double> weights{dist::Shape{2, 2, 2, 2}};
  dist::Tensor<double> outputs{shape};
  int state = 0;
  nn::reference::Attention<Geometry, double> attention;
  attention.forward(state, queries, keys, values, weights, outputs);
  const double expected[] = {2, 40, 2, 40, 7, 300, 7, 300};
  for (std::size_t i = 0; i < 8; ++i) CHECK(outputs[i] == doctest::Approx(expected[i]));
  CHECK(weights[5] == doctest::Approx(0.75));  // sequence 0, head 1, element 0 to element 1

  // dO = 1 everywhere: a value's gradient is the sum of its weights, and the queries of head 1 of sequence 0 turn by
  // 0.25 * 0.75 * (50 - 10) * log(3).
  dist::Tensor<double> ones{shape};
  for (double& element : ones.elements()) element = 1;
  dist::Tensor<double> dq{shape}, dk{shape}, dv{shape};
  attention.input_gradients(state, queries, keys, values, std::as_const(weights), ones, dq, dk, dv);
  const double of_values[] = {1, 0.5, 1, 1.5, 1, 1, 1, 1};
  for (std::size_t i = 0; i < 8; ++i) CHECK(dv[i] == doctest::Approx(of_values[i]));
  CHECK(dq[1] == doctest::Approx(7.5 * third));
  CHECK(dq[0] == 0);
  CHECK(dk[3] == doctest::Approx(2 * 7.5));
  CHECK(dk[1] == doctest::Approx(-2 * 7.5));
}
