// Compares layers of the reference back end in double with Keras, by the fixtures of keras_fixtures.py. Other tests
// compare the other back ends with the reference back end.
#include "nn/keras_fixtures.hpp"

#include <cmath>
#include <cstddef>
#include <vector>

#include <dist/core/shape.hpp>
#include <dist/core/static_shape.hpp>
#include <dist/nn/activations/smooth.hpp>
#include <dist/nn/layers/activate.hpp>
#include <dist/nn/layers/conv1d.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/conv2d_transpose.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/depthwise_conv2d.hpp>
#include <dist/nn/layers/group_normalization.hpp>
#include <dist/nn/layers/multi_head_attention.hpp>
#include <dist/nn/layers/pool1d.hpp>
#include <dist/nn/layers/pool2d.hpp>
#include <dist/nn/layers/softmax.hpp>
#include <dist/nn/layers/up_sampling2d.hpp>

#include <doctest/doctest.h>

#include "nn/place_layer.hpp"

namespace nn = dist::nn;
using List = std::vector<double>;

namespace {

/// The function of the same name in keras_fixtures.py.
List fractions(std::size_t count, std::size_t which) {
  List values;
  for (std::size_t i = 0; i < count; ++i)
    values.push_back((static_cast<double>((i * 37 + 11 + 17 * which) % 64) - 32) / 16);
  return values;
}

void check_equal(const List& values, const List& expected) {
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(values[i] - expected[i]) <= 1e-12 * std::fmax(1, std::abs(expected[i])));
  }
}

/// Checks a layer on two rows of shape `In`: its output, the gradient of its input, and the gradients of its
/// parameters.
template <class Layer, class In>
void check(const List& y, const List& dx, const std::vector<List>& gradients = {}) {
  dist_test::BoundLayer<Layer, In> layer;
  std::vector<List> parameters;
  for (const auto& parameter : Layer::template On<In>::parameters)
    parameters.push_back(fractions(parameter.shape.elements(), 2 + parameters.size()));
  check_equal(layer.forward(fractions(2 * In::elements, 0), parameters), y);
  check_equal(layer.backward(fractions(y.size(), 1)), dx);
  REQUIRE(layer.gradients.size() == gradients.size());
  for (std::size_t which = 0; which < gradients.size(); ++which) check_equal(layer.gradients[which], gradients[which]);
}

}  // namespace

TEST_CASE("Conv1D agrees with Keras") {
  check<nn::Conv1D<3, 3, nn::Linear, 2>, dist::StaticShape<8, 2>>(keras::conv1d_y, keras::conv1d_dx,
                                                                  {keras::conv1d_gradient_0, keras::conv1d_gradient_1});
  check<nn::Conv1D<2, 4, nn::Linear, 2, nn::Same>, dist::StaticShape<7, 3>>(
      keras::conv1d_same_y, keras::conv1d_same_dx, {keras::conv1d_same_gradient_0, keras::conv1d_same_gradient_1});
}

TEST_CASE("Conv2DTranspose agrees with Keras") {
  check<nn::Conv2DTranspose<3, 3, nn::Linear, 2>, dist::StaticShape<3, 2, 2>>(
      keras::conv2d_transpose_y, keras::conv2d_transpose_dx,
      {keras::conv2d_transpose_gradient_0, keras::conv2d_transpose_gradient_1});
  check<nn::Conv2DTranspose<2, 3, nn::Linear, 2, nn::Same>, dist::StaticShape<3, 4, 2>>(
      keras::conv2d_transpose_same_y, keras::conv2d_transpose_same_dx,
      {keras::conv2d_transpose_same_gradient_0, keras::conv2d_transpose_same_gradient_1});
  check<nn::Conv2DTranspose<2, 2, nn::Linear, 3>, dist::StaticShape<2, 3, 1>>(
      keras::conv2d_transpose_narrow_y, keras::conv2d_transpose_narrow_dx,
      {keras::conv2d_transpose_narrow_gradient_0, keras::conv2d_transpose_narrow_gradient_1});
}

TEST_CASE("pooling of sequences agrees with Keras") {
  using Sequence = dist::StaticShape<6, 2>;
  check<nn::MaxPool1D<3, 2, nn::Same>, Sequence>(keras::max_pool1d_same_y, keras::max_pool1d_same_dx);
  check<nn::AveragePool1D<3, 2, nn::Same>, Sequence>(keras::average_pool1d_same_y, keras::average_pool1d_same_dx);
}

TEST_CASE("UpSampling2D agrees with Keras") {
  check<nn::UpSampling2D<3>, dist::StaticShape<2, 3, 2>>(keras::up_sampling2d_y, keras::up_sampling2d_dx);
}

TEST_CASE("Conv2D and DepthwiseConv2D agree with Keras") {
  using Image = dist::StaticShape<6, 5, 2>;
  check<nn::Conv2D<3, 3, nn::Linear, 2>, Image>(keras::conv2d_strided_y, keras::conv2d_strided_dx,
                                                {keras::conv2d_strided_gradient_0, keras::conv2d_strided_gradient_1});
  check<nn::Conv2D<2, 3, nn::Linear, 2, nn::Same>, Image>(
      keras::conv2d_same_y, keras::conv2d_same_dx, {keras::conv2d_same_gradient_0, keras::conv2d_same_gradient_1});
  check<nn::Conv2D<4, 2, nn::Linear, 1, nn::Valid, nn::GlorotUniform, nn::Zeros, 2>, dist::StaticShape<3, 4, 4>>(
      keras::conv2d_groups_y, keras::conv2d_groups_dx,
      {keras::conv2d_groups_gradient_0, keras::conv2d_groups_gradient_1});
  check<nn::DepthwiseConv2D<3, nn::Linear, 1, nn::Same, 2>, dist::StaticShape<4, 3, 2>>(
      keras::depthwise_conv2d_y, keras::depthwise_conv2d_dx,
      {keras::depthwise_conv2d_gradient_0, keras::depthwise_conv2d_gradient_1});
}

TEST_CASE("pooling agrees with Keras") {
  using Image = dist::StaticShape<6, 5, 2>;
  using Small = dist::StaticShape<3, 2, 3>;
  check<nn::MaxPool2D<3, 2, nn::Same>, Image>(keras::max_pool2d_same_y, keras::max_pool2d_same_dx);
  check<nn::AveragePool2D<2>, dist::StaticShape<5, 4, 2>>(keras::average_pool2d_y, keras::average_pool2d_dx);
  check<nn::AveragePool2D<3, 2, nn::Same>, Image>(keras::average_pool2d_same_y, keras::average_pool2d_same_dx);
  check<nn::GlobalAveragePool2D, Small>(keras::global_average_pool2d_y, keras::global_average_pool2d_dx);
  check<nn::GlobalMaxPool2D, Small>(keras::global_max_pool2d_y, keras::global_max_pool2d_dx);
}

TEST_CASE("activations agree with Keras") {
  using Row = dist::StaticShape<16>;
  check<nn::Activate<nn::Tanh>, Row>(keras::tanh_y, keras::tanh_dx);
  check<nn::Activate<nn::Sigmoid>, Row>(keras::sigmoid_y, keras::sigmoid_dx);
  check<nn::Activate<nn::Silu>, Row>(keras::silu_y, keras::silu_dx);
  check<nn::Activate<nn::Gelu>, Row>(keras::gelu_y, keras::gelu_dx);
  check<nn::Activate<nn::GeluTanh>, Row>(keras::gelu_tanh_y, keras::gelu_tanh_dx);
  check<nn::Activate<nn::LeakyRelu<25>>, Row>(keras::leaky_relu_y, keras::leaky_relu_dx);
  check<nn::Activate<nn::Elu<>>, Row>(keras::elu_y, keras::elu_dx);
  check<nn::Activate<nn::Elu<1, 2>>, Row>(keras::elu_of_half_y, keras::elu_of_half_dx);
  check<nn::Activate<nn::Softplus>, Row>(keras::softplus_y, keras::softplus_dx);
  check<nn::Activate<nn::HardSilu>, Row>(keras::hard_silu_y, keras::hard_silu_dx);
  check<nn::Dense<3, nn::Gelu>, dist::StaticShape<4>>(keras::dense_gelu_y, keras::dense_gelu_dx,
                                                      {keras::dense_gelu_gradient_0, keras::dense_gelu_gradient_1});
  check<nn::Softmax, dist::StaticShape<2, 5>>(keras::softmax_y, keras::softmax_dx);
}

TEST_CASE("LayerNormalization and GroupNormalization agree with Keras") {
  check<nn::LayerNormalization<>, dist::StaticShape<3, 5>>(
      keras::layer_normalization_y, keras::layer_normalization_dx,
      {keras::layer_normalization_gradient_0, keras::layer_normalization_gradient_1});
  check<nn::GroupNormalization<2>, dist::StaticShape<3, 2, 4>>(
      keras::group_normalization_y, keras::group_normalization_dx,
      {keras::group_normalization_gradient_0, keras::group_normalization_gradient_1});
}

TEST_CASE("attention agrees with Keras") {
  check<nn::MultiHeadAttention<2, 4>, dist::StaticShape<4, 5>>(
      keras::attention_y, keras::attention_dx,
      {keras::attention_gradient_0, keras::attention_gradient_1, keras::attention_gradient_2,
       keras::attention_gradient_3, keras::attention_gradient_4, keras::attention_gradient_5,
       keras::attention_gradient_6, keras::attention_gradient_7});
  check<nn::MultiHeadAttention<1, 4, nn::AttendToPast>, dist::StaticShape<3, 2>>(
      keras::causal_attention_y, keras::causal_attention_dx,
      {keras::causal_attention_gradient_0, keras::causal_attention_gradient_1, keras::causal_attention_gradient_2,
       keras::causal_attention_gradient_3, keras::causal_attention_gradient_4, keras::causal_attention_gradient_5,
       keras::causal_attention_gradient_6, keras::causal_attention_gradient_7});
}
