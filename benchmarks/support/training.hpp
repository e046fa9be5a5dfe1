#pragma once

#include <cstddef>
#include <cstdint>

#include <dist/dist.hpp>
#include <dist/nn.hpp>

namespace bench {

namespace nn = dist::nn;

/// Reproducible random images of shape `image`, and their classes 0 to 9.
struct Images {
  explicit Images(std::size_t count, const dist::Shape& image = {28, 28, 1})
      : x(image.stacked(count)), y(dist::Shape{count}) {
    const dist::RandomStream random{3};
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = random.uniform(i);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = static_cast<std::int32_t>(random.below(10, i + x.size()));
  }

  dist::Tensor<float> x;
  dist::Tensor<std::int32_t> y;
};

/// Synchronous training on data in memory: forward, loss, backward, sum over the replicas, update. `Gradients`
/// determines the storage of the gradients.
template <class Architecture, class Optimizer, class Backend, class Strategy, class Gradients = nn::StoredGradients>
class NetworkTraining {
 public:
  explicit NetworkTraining(Strategy& strategy) : strategy_(strategy) {}

  /// Runs one step of every replica on its equal part of `examples`, such as Images, in host memory.
  void operator()(const auto& examples) {
    const std::size_t share = examples.x.rows() / strategy_.num_replicas_in_sync();
    strategy_.run([&](auto& replica) {
      const std::size_t first = replica.local_index() * share;
      step(replica, examples.x.view().rows(first, share), examples.y.view().rows(first, share), examples.y.size());
    });
  }

  /// Sums the last gradients over the replicas, and updates.
  void update() {
    strategy_.run([&](auto& replica) {
      net_.renew_gradients(replica);
      optimizer_.apply_gradients(replica);
    });
  }

  /// The step of one replica, with views in its device's memory. `labels` is the number of labels of all replicas.
  /// Returns the loss.
  auto step(auto& replica, const auto& x, const auto& y, std::size_t labels) {
    const auto logits = net_.forward(replica, x);
    const auto loss = nn::sparse_categorical_crossentropy(replica, logits, y, labels);
    net_.backward(replica, loss);
    optimizer_.apply_gradients(replica);
    return loss;
  }

 private:
  using Net = nn::Network<Architecture, Backend, float, Gradients>;

  Strategy& strategy_;
  Net net_{strategy_, 1};
  nn::Optimizer<Strategy, Net, Optimizer> optimizer_{strategy_, net_, Optimizer{.learning_rate = 1e-3f}};
};

}  // namespace bench
