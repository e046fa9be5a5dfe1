// The residual network of He, Zhang, Ren and Sun, with the layers of the library.
#include <cstddef>
#include <cstdint>

#include <dist/core/random.hpp>
#include <dist/core/tensor.hpp>
#include <dist/nn/layers/activate.hpp>
#include <dist/nn/layers/add.hpp>
#include <dist/nn/layers/batch_normalization.hpp>
#include <dist/nn/layers/conv2d.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/layers/named.hpp>
#include <dist/nn/layers/pool2d.hpp>
#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/onednn/backend.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/sequential.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>

namespace nn = dist::nn;

namespace {

using Normalize = nn::BatchNormalization<>;

template <std::size_t Filters, std::size_t Stride>
using Body = nn::Sequential<nn::Conv2D<Filters, 3, nn::Linear, Stride, nn::Same>, Normalize, nn::ReLU,
                            nn::Conv2D<Filters, 3, nn::Linear, 1, nn::Same>, Normalize>;
template <std::size_t Filters, std::size_t Stride>
using Projection = nn::Sequential<nn::Conv2D<Filters, 1, nn::Linear, Stride>, Normalize>;

template <std::size_t Filters>
using Block = nn::Sequential<nn::Residual<Body<Filters, 1>>, nn::ReLU>;
template <std::size_t Filters>
using Narrower = nn::Sequential<nn::Residual<Body<Filters, 2>, Projection<Filters, 2>>, nn::ReLU>;

template <class In, std::size_t Width>
using ResNet = nn::Sequential<In,
                              nn::Named<"stem", nn::Sequential<nn::Conv2D<Width, 7, nn::Linear, 2, nn::Same>, Normalize,
                                                               nn::ReLU, nn::MaxPool2D<3, 2, nn::Same>>>,
                              nn::Named<"block_1", Block<Width>>, nn::Named<"block_2", Narrower<2 * Width>>,
                              nn::Named<"block_3", Narrower<4 * Width>>, nn::Named<"block_4", Narrower<8 * Width>>,
                              nn::GlobalAveragePool2D, nn::Dense<10>>;

constexpr std::size_t convolution(std::size_t window, std::size_t channels, std::size_t filters) {
  return (window * window * channels + 1) * filters + 2 * filters;  // the bias, gamma and beta
}
constexpr std::size_t narrower(std::size_t filters) {
  return convolution(3, filters / 2, filters) + convolution(3, filters, filters) + convolution(1, filters / 2, filters);
}

}  // namespace

TEST_CASE("the paper's residual network has the right shapes, parameters and names") {
  using Net = ResNet<nn::Input<32, 32, 3>, 64>;
  CHECK(Net::parameter_count ==
        convolution(7, 3, 64) + 2 * convolution(3, 64, 64) + narrower(128) + narrower(256) + narrower(512) + 513 * 10);
  CHECK(std::is_same_v<Net::Output<3>, dist::StaticShape<8, 8, 64>>);
  CHECK(std::is_same_v<Net::Output<5>, dist::StaticShape<8, 8, 64>>);
  CHECK(std::is_same_v<Net::Output<11>, dist::StaticShape<1, 1, 512>>);
  CHECK(std::is_same_v<Net::Output<12>, dist::StaticShape<512>>);
  CHECK(Net::parameters[0].name() == "stem/conv2d/kernel");
  CHECK(Net::parameters[4].name() == "block_1/conv2d/kernel");
  CHECK(Net::parameters[12].name() == "block_2/conv2d/kernel");
  CHECK(Net::parameters[20].name() == "block_2/conv2d_2/kernel");
}

TEST_CASE("a narrow residual network memorises a few images on two replicas") {
  using Net = ResNet<nn::Input<32, 32, 3>, 8>;
  constexpr std::size_t rows = 12;
  dist::Tensor<float> x{dist::Shape{rows, 32, 32, 3}};
  dist::Tensor<std::int32_t> labels{dist::Shape{rows}};
  const dist::RandomStream random{11};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = random.uniform(i) - 0.5F;
  for (std::size_t i = 0; i < rows; ++i) labels[i] = static_cast<std::int32_t>(random.below(10, x.size() + i));

  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  nn::Network<Net, nn::OneDnn> net{strategy, 5};
  nn::Optimizer optimizer{strategy, net, nn::Adam{.learning_rate = 0.003F}};
  const auto step = [&] {
    return strategy.reduce(dist::sum, strategy.run([&](auto& replica) {
      constexpr std::size_t share = rows / 2;
      const std::size_t first = replica.replica_id().index() * share;
      const auto logits = net.forward(replica, dist::TensorView<const float>{x}.rows(first, share));
      const auto loss = nn::sparse_categorical_crossentropy(
          replica, logits, dist::TensorView<const std::int32_t>{labels}.rows(first, share), rows);
      net.backward(replica, loss);
      optimizer.apply_gradients(replica);
      return loss.value();
    }));
  };
  const float before = step();
  CHECK(before > 1.5F);
  float after = before;
  for (int i = 0; i < 40; ++i) after = step();
  CHECK(after < 0.1F);
}
