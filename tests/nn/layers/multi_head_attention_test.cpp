#include <dist/nn/layers/multi_head_attention.hpp>

#include <cmath>
#include <complex>
#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

#include <dist/core/static_shape.hpp>
#include <dist/nn/layers/add.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/group_normalization.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/onednn/backend.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>

#include <doctest/doctest.h>

#include "nn/attention_reach.hpp"
#include "nn/place_layer.hpp"
#include "nn/run_network.hpp"
#include "nn/steady_steps.hpp"

namespace nn = dist::nn;
using List = std::vector<double>;

TEST_CASE("with equal keys, attention returns the mean of all values, or of all past values") {
  using In = dist::StaticShape<3, 1>;
  // Queries and keys are 0, so all weights are equal. The value is 2 x + 1, the output 10 times this value.
  const std::vector<List> parameters{{0}, {0}, {0}, {0}, {2}, {1}, {10}, {0}};
  dist_test::BoundLayer<nn::MultiHeadAttention<1, 1>, In> all;
  CHECK(all.forward({1, 2, 6}, parameters) == List{70, 70, 70});
  dist_test::BoundLayer<nn::MultiHeadAttention<1, 1, nn::AttendToPast>, In> past;
  const List y = past.forward({1, 2, 6}, parameters);
  CHECK(y[0] == 30);
  CHECK(y[1] == 40);
  CHECK(y[2] == doctest::Approx(70));
}

TEST_CASE("MultiHeadAttention has the shapes, parameters and fans of Keras") {
  using Bound = nn::MultiHeadAttention<2, 3>::On<dist::StaticShape<5, 4>>;
  CHECK(std::is_same_v<Bound::Output, dist::StaticShape<5, 4>>);
  CHECK(Bound::name == "multi_head_attention");
  CHECK(Bound::parameters[2].name == "key/kernel");
  CHECK(Bound::parameters[2].shape == dist::Shape{4, 2, 3});
  CHECK(Bound::parameters[6].shape == dist::Shape{2, 3, 4});
  List kernel(24);
  List expected(24);
  const dist::Shape shape{4, 2, 3};
  Bound::initialize<2>(dist::TensorView<double>{kernel.data(), shape}, dist::RandomStream{1});
  nn::GlorotUniform::fill(dist::TensorView<double>{expected.data(), shape}, nn::Fans{4 * 2, 4 * 3},
                          dist::RandomStream{1});
  CHECK(kernel == expected);
}

TEST_CASE("gradients of MultiHeadAttention agree with central differences, and oneDNN with the plain loops") {
  using Block = nn::Sequential<nn::Residual<nn::Sequential<nn::LayerNormalization<>, nn::MultiHeadAttention<2, 3>>>,
                               nn::MultiHeadAttention<1, 2, nn::AttendToPast>>;
  using Net = nn::Sequential<nn::Input<3>, nn::Dense<12>, nn::Reshape<3, 4>, Block, nn::Flatten, nn::Dense<2>>;
  for (const std::size_t rows : {std::size_t{0}, std::size_t{1}, std::size_t{3}}) {
    CAPTURE(rows);
    dist_test::check_gradients<Net, nn::Reference>(rows);
  }
  dist_test::check_against<Net, nn::OneDnn, nn::Reference>({3, 1, 0, 4});
}

namespace {

struct Grouped : nn::AttendToPast {
  static constexpr std::size_t key_heads = 2;
};
struct Rotary : nn::AttendToAll {
  using Positions = nn::RotaryPositions<100>;
};
struct LikeLlama : nn::AttendToPast {
  static constexpr std::size_t key_heads = 1;
  using Positions = nn::RotaryPositions<>;
};

struct OneKey : nn::AttendToPast {
  static constexpr std::size_t key_heads = 1;
};

List identity(std::size_t size) {
  List matrix(size * size);
  for (std::size_t i = 0; i < size; ++i) matrix[i * size + i] = 1;
  return matrix;
}

}  // namespace

TEST_CASE("grouped heads compute the same as equal heads of keys and values") {
  using In = dist::StaticShape<3, 5>;
  constexpr std::size_t heads = 4, width = 3, channels = 5;
  // Each head of keys and values is for two neighbouring heads of queries.
  const auto repeated = [](const List& grouped, std::size_t rows) {
    List all;
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t head = 0; head < heads; ++head)
        for (std::size_t c = 0; c < width; ++c) all.push_back(grouped[(row * 2 + head / 2) * width + c]);
    return all;
  };
  using dist_test::numbers;
  std::vector<List> parameters{numbers(channels * heads * width, 1), numbers(heads * width, 2),
                               numbers(channels * 2 * width, 3),     numbers(2 * width, 4),
                               numbers(channels * 2 * width, 5),     numbers(2 * width, 6),
                               numbers(heads * width * channels, 7), numbers(channels, 8)};
  dist_test::BoundLayer<nn::MultiHeadAttention<heads, width, Grouped>, In> grouped;
  CHECK(decltype(grouped)::Bound::parameters[2].shape == dist::Shape{channels, 2, width});
  const List x = numbers(2 * In::elements, 9);
  const List y = grouped.forward(x, parameters);
  for (std::size_t which = 2; which < 6; ++which)
    parameters[which] = repeated(parameters[which], which % 2 == 0 ? channels : 1);
  dist_test::BoundLayer<nn::MultiHeadAttention<heads, width, nn::AttendToPast>, In> all;
  CHECK(dist_test::difference(y, all.forward(x, parameters)) < 1e-14);
}

TEST_CASE("attention without biases computes the same as with biases of 0") {
  using In = dist::StaticShape<3, 4>;
  using dist_test::numbers;
  const List query = numbers(24, 1), key = numbers(12, 2), value = numbers(12, 3), output = numbers(24, 4);
  const List x = numbers(2 * In::elements, 5);
  dist_test::BoundLayer<nn::MultiHeadAttention<2, 3, OneKey, nn::GlorotUniform, nn::NoBias>, In> bare;
  const auto& parameters = decltype(bare)::Bound::parameters;
  REQUIRE(parameters.size() == 4);
  CHECK(parameters[1].name == "key/kernel");
  CHECK(parameters[3].name == "attention_output/kernel");
  dist_test::BoundLayer<nn::MultiHeadAttention<2, 3, OneKey>, In> biased;
  const List y = bare.forward(x, {query, key, value, output});
  CHECK(y == biased.forward(x, {query, List(6), key, List(3), value, List(3), output, List(4)}));
  const List slopes = numbers(y.size(), 6);
  CHECK(bare.backward(slopes) == biased.backward(slopes));
  for (std::size_t which = 0; which < 4; ++which) CHECK(bare.gradients[which] == biased.gradients[2 * which]);
}

TEST_CASE("rotary positions rotate pairs of columns of queries and keys, as complex numbers of length 1 do") {
  constexpr std::size_t length = 5, width = 4, half = 2;
  const List one = identity(width), zero(width);
  dist_test::BoundLayer<nn::MultiHeadAttention<1, width, Rotary>, dist::StaticShape<length, width>> layer;
  const List x = dist_test::numbers(length * width, 1);
  const List y = layer.forward(x, {one, zero, one, zero, one, zero, one, zero});
  List expected;
  for (std::size_t query = 0; query < length; ++query) {
    List weight(length);
    double sum = 0;
    for (std::size_t key = 0; key < length; ++key) {
      double product = 0;
      for (std::size_t c = 0; c < half; ++c) {
        const std::complex<double> of_query{x[query * width + c], x[query * width + c + half]};
        const std::complex<double> of_key{x[key * width + c], x[key * width + c + half]};
        const double angle = (double(query) - double(key)) / (c == 0 ? 1.0 : 10.0);  // 100^(2 c / 4)
        product += (of_query * std::polar(1.0, angle) * std::conj(of_key)).real();
      }
      sum += weight[key] = std::exp(product / 2);
    }
    for (std::size_t c = 0; c < width; ++c) {
      expected.push_back(0);
      for (std::size_t key = 0; key < length; ++key) expected.back() += weight[key] / sum * x[key * width + c];
    }
  }
  CHECK(dist_test::difference(y, expected) < 1e-14);
}

TEST_CASE("gradients of grouped heads and rotary positions agree with differences, and oneDNN with the plain loops") {
  using Net =
      nn::Sequential<nn::Input<3, 4>, nn::MultiHeadAttention<4, 2, Grouped>, nn::MultiHeadAttention<1, 4, Rotary>,
                     nn::MultiHeadAttention<2, 2, LikeLlama, nn::GlorotUniform, nn::NoBias>, nn::Flatten, nn::Dense<2>>;
  for (const std::size_t rows : {std::size_t{0}, std::size_t{2}}) dist_test::check_gradients<Net, nn::Reference>(rows);
  dist_test::check_against<Net, nn::OneDnn, nn::Reference>({3, 1, 0, 4});
}

TEST_CASE("attention of long sequences by blocks matches the plain loops, at changing batch sizes") {
  using Net = nn::Sequential<nn::Input<110, 6>, nn::MultiHeadAttention<2, 5, nn::AttendToPast>,
                             nn::MultiHeadAttention<1, 17>, nn::Flatten, nn::Dense<2>>;
  dist_test::check_against<Net, nn::OneDnn, nn::Reference>({2, 1, 0, 2});
}

TEST_CASE("elements outside the reach of attention have no effect, not even a NaN, and no gradient") {
  const auto check = []<class Backend>(Backend) {
    dist_test::Bench<Backend> bench;
    typename Backend::State state;
    dist_test::check_attention_reach<Backend>(bench, state);
  };
  check(nn::Reference{});
  check(nn::OneDnn{});
}

TEST_CASE("a step of MultiHeadAttention with a known batch size allocates no memory") {
  using Net = nn::Sequential<nn::Input<3, 4>, nn::MultiHeadAttention<2, 3>>;
  dist_test::check_steady_steps<Net>({2, 4});
}
