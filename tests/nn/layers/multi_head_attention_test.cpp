#include <dist/nn/layers/multi_head_attention.hpp>

#include <cmath>
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

TEST_CASE("a step of MultiHeadAttention with a known batch size allocates no memory") {
  using Net = nn::Sequential<nn::Input<3, 4>, nn::MultiHeadAttention<2, 3>>;
  dist_test::check_steady_steps<Net>({2, 4});
}
