// The training step of the guide's CNN on Fashion-MNIST-shaped data: one replica against the machine's multiply-add limit for
// that network, and two replicas against one. Facts of the network: 17.40 MFLOP per image forward and backward.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <dist/dist.hpp>
#include <dist/nn.hpp>
#include <dist/nn/onednn/backend.hpp>

#include "support/rounds.hpp"

namespace {

namespace nn = dist::nn;

using Net = nn::Sequential<nn::Input<28, 28, 1>, nn::Conv2D<32, 3, nn::Relu>, nn::Flatten, nn::Dense<128, nn::Relu>,
                           nn::Dense<10>>;

// Multiply-adds count twice. Forward: convolution, two dense layers. Backward: the weight gradients of all three and the input
// gradients of the dense layers.
constexpr double convolution = 2.0 * 26 * 26 * 32 * 9;
constexpr double dense = 2.0 * 21632 * 128;
constexpr double head = 2.0 * 128 * 10;
constexpr double flop_per_image = 2 * convolution + 3 * dense + 3 * head;

constexpr std::size_t batch_per_replica = 64;

template <class Strategy>
class Step {
 public:
  explicit Step(Strategy& strategy)
      : strategy_(strategy), images_(dist::Shape{global_batch(), 28, 28, 1}), labels_(dist::Shape{global_batch()}) {
    const dist::RandomStream random{3};
    for (std::size_t i = 0; i < images_.size(); ++i) images_[i] = random.uniform(i);
    for (std::size_t i = 0; i < labels_.size(); ++i)
      labels_[i] = static_cast<std::int32_t>(random.below(10, i + images_.size()));
  }

  /// One global step; the number of images.
  double operator()() {
    strategy_.run([&](auto& replica) {
      const std::size_t first = replica.local_index() * batch_per_replica;
      const auto logits = net_.forward(replica, dist::TensorView<const float>{images_}.rows(first, batch_per_replica));
      const auto loss = nn::sparse_categorical_crossentropy(
          replica, logits, dist::TensorView<const std::int32_t>{labels_}.rows(first, batch_per_replica),
          global_batch());
      net_.backward(replica, loss);
      optimizer_.apply_gradients(replica);
    });
    return static_cast<double>(global_batch());
  }

 private:
  [[nodiscard]] std::size_t global_batch() const { return batch_per_replica * strategy_.num_replicas_in_sync(); }

  Strategy& strategy_;
  dist::Tensor<float> images_;
  dist::Tensor<std::int32_t> labels_;
  nn::Network<Net, nn::OneDnn> net_{strategy_, 1};
  nn::Optimizer<Strategy, nn::Network<Net, nn::OneDnn>, nn::SGD> optimizer_{strategy_, net_,
                                                                            nn::SGD{.learning_rate = 1e-3f}};
};

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 40;
  dist::OneDevice<dist::Cpu> one;
  dist::Mirrored<dist::SharedMemoryAllReduce> two{2};
  Step<dist::OneDevice<dist::Cpu>> step_one{one};
  Step<dist::Mirrored<dist::SharedMemoryAllReduce>> step_two{two};

  bench::Rounds measured{"CNN training step, batch 64 per replica, SGD", "images"};
  const auto limit = measured.add("multiply-add limit of one core", [] {
    constexpr double slice = 0.02;
    return bench::fma_rate(slice) * slice / flop_per_image;
  });
  const auto single = measured.add("OneDevice<Cpu>, 1 x 64", [&] { return step_one(); });
  const auto mirrored = measured.add("Mirrored<SharedMemoryAllReduce>, 2 x 64", [&] { return step_two(); });
  measured.ratio("1 replica over the multiply-add limit", single, limit);
  measured.ratio("2 replicas over 1 replica", mirrored, single);
  measured.run(rounds, 0.1, bench::quiet_cores(two));
  measured.print_table();
  if (argc > 2) {
    std::FILE* json = std::fopen(argv[2], "w");
    if (json == nullptr) return 1;
    measured.print_json(json);
    std::fclose(json);
  }
  return measured.measured() ? 0 : 1;
}
