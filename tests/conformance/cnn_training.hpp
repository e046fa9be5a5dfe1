// The guide's CNN on Fashion-MNIST, trained for some steps and compared between strategies. Tests that include this are
// skipped if the files are missing.
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

#include <dist/data.hpp>
#include <dist/data/fashion_mnist.hpp>
#include <dist/dist.hpp>
#include <dist/nn.hpp>
#include <dist/nn/onednn/backend.hpp>
#include <support/needs_fashion_mnist.hpp>

#include <doctest/doctest.h>

namespace conformance::cnn {

namespace nn = dist::nn;
namespace data = dist::data;

using Net = nn::Sequential<nn::Input<28, 28, 1>, nn::Conv2D<32, 3, nn::Relu>, nn::Flatten, nn::Dense<128, nn::Relu>,
                           nn::Dense<10>>;
inline constexpr std::size_t global_batch = 128;
inline constexpr int steps = 20;

inline const testing::NeedsFashionMnist needs_fashion_mnist;

inline const auto& training_set() {
  static const auto set =
      data::fashion_mnist(data::Split::train) | data::shuffle(60'000, 1) | data::batch(global_batch);
  return set;
}

struct Run {
  std::vector<float> losses;
  std::vector<float> weights;
};

template <class Strategy, class O>
Run train(Strategy&& strategy, O optimizer_function) {
  nn::Network<Net, nn::OneDnn> net{strategy, 3};
  nn::Optimizer optimizer{strategy, net, optimizer_function};
  Run run;
  auto dataset = strategy.distribute_dataset(training_set());
  for (auto&& batch : dataset) {
    const auto losses = strategy.run(
        [&](auto& replica, const auto& part) {
          const auto logits = net.forward(replica, part.x);
          const auto loss = nn::sparse_categorical_crossentropy(replica, logits, part.y, global_batch);
          net.backward(replica, loss);
          optimizer.apply_gradients(replica);
          return loss.value();
        },
        batch);
    run.losses.push_back(strategy.reduce(dist::sum, losses));
    if (run.losses.size() == steps) break;
  }
  const auto weights = net.parameters().read(strategy.scope());
  run.weights.assign(weights.data(), weights.data() + weights.size());
  return run;
}

inline void check_same_losses(const Run& expected, const Run& run) {
  REQUIRE(run.losses.size() == expected.losses.size());
  for (std::size_t step = 0; step < expected.losses.size(); ++step) {
    CAPTURE(step);
    CHECK(run.losses[step] == doctest::Approx(expected.losses[step]).epsilon(1e-5).scale(0));
  }
}

inline bool same_bits(const Run& a, const Run& b) {
  return a.weights.size() == b.weights.size() &&
         std::memcmp(a.weights.data(), b.weights.data(), a.weights.size() * sizeof(float)) == 0;
}

}  // namespace conformance::cnn
