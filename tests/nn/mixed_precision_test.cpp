#include <dist/nn/mixed_precision.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <dist/core/float16.hpp>
#include <dist/nn/activations/smooth.hpp>
#include <dist/nn/layers/batch_normalization.hpp>
#include <dist/nn/layers/concatenate.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/group_normalization.hpp>
#include <dist/nn/layers/pool2d.hpp>
#include <dist/nn/layers/softmax.hpp>
#include <dist/nn/layers/views.hpp>
#include <dist/nn/loss_scale.hpp>
#include <dist/nn/losses/regression.hpp>
#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/reference/backend.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>

#include "nn/run_network.hpp"

namespace nn = dist::nn;

namespace {

template <class Half>
using Mixed = nn::MixedPrecision<nn::Reference, Half>;

/// A back end with products only.
struct Products {
  static constexpr std::string_view name = "products";
  using Device = dist::Cpu;
  using State = nn::Reference::State;
  template <class T>
  static constexpr bool supports = true;
  template <class Geometry, class T>
  using Dense = nn::Reference::Dense<Geometry, T>;
  template <class Geometry, class T>
  using Conv2D = nn::Reference::Conv2D<Geometry, T>;
};

using Cnn = nn::Sequential<nn::Input<6, 6, 1>, nn::Conv2D<4, 3, nn::Relu>, nn::BatchNormalization<>, nn::MaxPool2D<2>,
                           nn::Flatten, nn::Dense<3>>;

/// The losses of ten steps on two replicas.
template <class Backend>
std::vector<float> train(bool scaled) {
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  nn::Network<Cnn, Backend> net{strategy, 3};
  nn::Optimizer optimizer{strategy, net, nn::Adam{.learning_rate = 0.02F}};
  nn::LossScale scale{strategy, {.initial = 1024, .growth_steps = 4}};
  dist::Tensor<float> x{dist::Shape{6, 6, 6, 1}};
  const dist::Tensor<std::int32_t> labels{dist::Shape{6}, {0, 1, 2, 0, 1, 2}};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 7) % 19) / 19;
  std::vector<float> losses;
  for (int step = 0; step < 10; ++step)
    losses.push_back(strategy.reduce(dist::sum, strategy.run([&](auto& replica) {
      const std::size_t first = 3 * replica.replica_id().index();
      const auto logits = net.forward(replica, dist::TensorView<const float>{x}.rows(first, 3));
      const auto loss = nn::sparse_categorical_crossentropy(
          replica, logits, dist::TensorView<const std::int32_t>{labels}.rows(first, 3), 6);
      if (scaled) scale.apply(replica, logits);
      net.backward(replica, loss);
      const bool is_finite = !scaled || scale.remove(replica, net);
      CHECK(is_finite);
      optimizer.apply_gradients(replica);
      return loss.value();
    })));
  return losses;
}

}  // namespace

TEST_CASE("only factors are rounded to 16 bits (spec P22)") {
  CHECK(nn::Backend<Mixed<dist::BFloat16>>);
  CHECK(Mixed<dist::BFloat16>::supports<float>);
  // BFloat16 has 8 bits: 257 becomes 256, a tie rounded to even, and 259 becomes 260.
  using Net = nn::Sequential<nn::Input<2>, nn::Dense<1, nn::Relu>>;
  const std::vector<double> batch{257, 1}, weights{259, 257};
  std::vector<double> parameters(Net::padded_count);
  parameters[Net::parameters[0].offset] = weights[0];
  parameters[Net::parameters[0].offset + 1] = weights[1];
  parameters[Net::parameters[1].offset] = 257;
  nn::Workspace<Net, Mixed<dist::BFloat16>, float> workspace;
  const auto pass = dist_test::pass(workspace, parameters, batch);
  CHECK(pass.outputs[0] == 256.0 * 260 + 256 + 257);
  // The slope, about 67000, is rounded, too; the input is the same.
  const double slope =
      static_cast<float>(dist::BFloat16{static_cast<float>(dist_test::numbers(1, 3)[0] + pass.outputs[0])});
  CHECK(pass.gradients == std::vector<double>{256 * slope, slope, slope});
  // Float16 has 11 bits, enough for these numbers.
  nn::Workspace<Net, Mixed<dist::Float16>, float> exact;
  CHECK(dist_test::pass(exact, parameters, batch).outputs[0] == 257.0 * 259 + 257 + 257);
}

TEST_CASE("layers without products are the back end's, and missing operations are missing") {
  using Net =
      nn::Sequential<nn::Input<6, 6, 1>, nn::Concatenate<nn::Conv2D<4, 3, nn::Gelu, 1, nn::Same>, nn::Sequential<>>,
                     nn::LayerNormalization<>, nn::GlobalAveragePool2D, nn::Dense<3>, nn::Softmax>;
  const auto parameters = dist_test::numbers(Net::padded_count, 1);
  const auto batch = dist_test::numbers(2 * 36, 2);
  nn::Workspace<Net, Mixed<dist::Float16>, float> rounded;
  nn::Workspace<Net, nn::Reference, float> exact;
  const auto pass = dist_test::pass(rounded, parameters, batch);
  const auto expected = dist_test::pass(exact, parameters, batch);
  CHECK(dist_test::difference(pass.outputs, expected.outputs) < 2e-3);
  CHECK(dist_test::difference(pass.gradients, expected.gradients) < 2e-3);

  using Asked = nn::GlobalAveragePool2D::On<dist::StaticShape<3, 3, 1>>::Asked<float>;
  CHECK(nn::detail::Computes<Mixed<dist::Float16>, Asked>);
  CHECK_FALSE(nn::detail::Computes<nn::MixedPrecision<Products, dist::Float16>, Asked>);
}

TEST_CASE("networks train with 16-bit factors as with float factors") {
  const auto expected = train<nn::Reference>(false);
  CHECK(expected.back() < 0.7F * expected.front());
  const auto bfloat16 = train<Mixed<dist::BFloat16>>(false);
  const auto float16 = train<Mixed<dist::Float16>>(true);
  CHECK(bfloat16 != expected);
  for (std::size_t step = 0; step < expected.size(); ++step) {
    CHECK(bfloat16[step] == doctest::Approx(expected[step]).epsilon(0.05));
    CHECK(float16[step] == doctest::Approx(expected[step]).epsilon(0.01));
  }
}

TEST_CASE("a loss scale keeps gradients that Float16 cannot represent (spec P22)") {
  using Net = nn::Sequential<nn::Input<1>, nn::Dense<1>>;
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  nn::Network<Net, Mixed<dist::Float16>> net{strategy};
  nn::LossScale scale{strategy};
  CHECK(scale.value(strategy.scope()) == 32768);
  const dist::Tensor<float> x{dist::Shape{1, 1}, {1}};
  strategy.run([&](auto& replica) {
    for (const bool scaled : {false, true}) {
      const auto y = net.forward(replica, x);
      y.gradient[0] = 0x1p-26F;  // the smallest number of Float16 is 2^-24
      if (scaled) scale.apply(replica, y);
      net.backward(replica, 0);
      if (scaled) CHECK(scale.remove(replica, net));
      CHECK(net.template gradient<0, 0>(replica)[0] == (scaled ? 0x1p-26F : 0.0F));
    }
  });
}
