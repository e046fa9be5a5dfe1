// Trains and evaluates the guide's network on Fashion-MNIST with Model.fit.
#include <cstdio>

#include <dist/data.hpp>
#include <dist/data/fashion_mnist.hpp>
#include <dist/dist.hpp>
#include <dist/nn.hpp>
#include <dist/train.hpp>

#include "backend.hpp"
#include "check.hpp"
#include "quick.hpp"

int main() try {
  namespace nn = dist::nn;
  namespace data = dist::data;

  const std::size_t epochs = quick() ? 1 : 5;

  // [fit]
  dist::Mirrored<dist::ThreadAllReduce> strategy;  // one replica per core
  auto train = data::fashion_mnist(data::Split::train) | data::shuffle(60'000, /*seed=*/1) | data::batch(128);
  auto test = data::fashion_mnist(data::Split::test) | data::batch(128);

  using Net = nn::Sequential<nn::Input<28, 28, 1>, nn::Conv2D<32, 3, nn::Relu>, nn::Flatten,  //
                             nn::Dense<128, nn::Relu>, nn::Dense<10>>;
  nn::Network<Net, Backend> net{strategy};
  nn::Model model{strategy, net, nn::Adam{}, nn::SparseCategoricalCrossentropy{}, nn::SparseCategoricalAccuracy{}};

  std::printf("%s; layers by %s\n", strategy.describe().c_str(), Backend::name.data());
  const auto schedule = [](std::size_t epoch) { return epoch < 3 ? 1e-3F : 1e-4F; };
  auto history = model.fit(train, {.epochs = epochs}, nn::callbacks::LearningRateScheduler{schedule});
  auto result = model.evaluate(test, {.verbose = 0});
  std::printf("test accuracy: %.4f\n", result["accuracy"]);
  // [/fit]

  check(result["accuracy"] >= (quick() ? 0.80 : 0.90), "the network classifies the test images");
  check(history["loss"].back() < 0.7, "the loss fell");
} catch (const dist::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return dist::exit_code(error);
}
