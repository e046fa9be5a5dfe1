// Fashion-MNIST at 93 % accuracy, with batch normalisation, dropout, and randomly flipped and shifted images.
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include <dist/data.hpp>
#include <dist/data/fashion_mnist.hpp>
#include <dist/dist.hpp>
#include <dist/nn.hpp>
#include <dist/train.hpp>

#include "backend.hpp"
#include "check.hpp"
#include "quick.hpp"

namespace {

namespace nn = dist::nn;
namespace data = dist::data;

// [network]
/// Moving averages that adapt faster than with Keras' momentum of 0.99, for short training runs.
struct Follows : nn::BatchNormalizationOptions {
  static constexpr double momentum = 0.9;
};

template <std::size_t Filters>
using Convolution = nn::Sequential<nn::Conv2D<Filters, 3, nn::Linear, 1, nn::Same>,
                                   nn::BatchNormalization<nn::PerReplicaStatistics, Follows>, nn::ReLU>;
template <std::size_t Filters>
using Stage = nn::Sequential<Convolution<Filters>, nn::Residual<Convolution<Filters>>, nn::MaxPool2D<2>>;

using Net = nn::Sequential<nn::Input<28, 28, 1>, Convolution<32>, nn::MaxPool2D<2>, Stage<64>, Stage<128>, nn::Flatten,
                           nn::Dropout<30>, nn::Dense<10>>;
// [/network]

}  // namespace

int main() try {
  const std::size_t epochs = quick() ? 2 : 12;

  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  // [augmentation]
  // Every epoch shuffles the images again, and changes each in another way.
  auto train = data::fashion_mnist(data::Split::train) | data::take(quick() ? 1'024 : 60'000) |
               data::shuffle(60'000, /*seed=*/1) | data::random_flip(/*seed=*/2) |
               data::random_crop(/*padding=*/1, /*seed=*/3) | data::batch(128);
  // [/augmentation]
  auto test = data::fashion_mnist(data::Split::test) | data::take(quick() ? 128 : 10'000) | data::batch(128);

  const auto steps = static_cast<std::int64_t>(epochs * train.cardinality().count());
  const nn::WarmUp schedule{steps / 10,
                            nn::CosineDecay{.initial_learning_rate = 3e-3F, .decay_steps = steps - steps / 10}};
  nn::Network<Net, Backend> net{strategy, /*seed=*/1};
  nn::Model model{strategy, net, nn::With{nn::AdamW{.weight_decay = 0.05F}, schedule},
                  nn::SparseCategoricalCrossentropy{}, nn::SparseCategoricalAccuracy{}};
  const nn::History history = model.fit(train, {.epochs = epochs, .validation = test, .verbose = 2});

  const double accuracy = history["val_accuracy"].back();
  std::printf("test accuracy: %.4f\n", accuracy);
  check(history["loss"].back() < history["loss"].front(), "the network learns");
  check(quick() || accuracy >= 0.93, "it classifies 93 % of the test images");
} catch (const dist::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return dist::exit_code(error);
}
