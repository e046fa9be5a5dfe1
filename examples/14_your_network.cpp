// A hand-written network. An optimizer needs its parameters and gradients, a model also forward and backward, and a
// checkpoint track.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <vector>

#include <dist/checkpoint/checkpoint.hpp>
#include <dist/dist.hpp>
#include <dist/train.hpp>

#include "check.hpp"

namespace {

namespace nn = dist::nn;

constexpr std::size_t classes = 3, inputs = 2, per_class = inputs + 1;  // a weight for each input, and a bias

// [network]
/// Scores of each class, linear in the inputs.
class LinearClassifier {
 public:
  explicit LinearClassifier(dist::Strategy auto& strategy)
      : weights_(dist::variable<float>(strategy, {classes, per_class}, 0.0F, "weights")),
        slopes_(strategy.template buffer<float>({classes, per_class}, "slopes")),
        replicas_(strategy.num_local_replicas()) {}

  auto& parameters() { return weights_; }  // all trainable parameters in one variable
  auto& gradients() { return slopes_; }    // the same number of elements, one copy per replica
  void track(auto& visit) { visit("weights", weights_); }

  nn::Outputs<float> forward(const auto& replica, dist::TensorView<const float> x) {
    Batch& batch = replicas_[replica.local_index()];
    batch.x = x;
    batch.scores.resize({x.rows(), classes});
    batch.gradient.resize({x.rows(), classes});  // the loss writes d loss / d scores here
    const auto w = weights_.component(replica);  // this replica's copy
    for (std::size_t i = 0; i < batch.scores.size(); ++i) {
      const float *of_class = &w[i % classes * per_class], *row = x.data() + i / classes * inputs;
      batch.scores[i] = of_class[0] * row[0] + of_class[1] * row[1] + of_class[2];
    }
    return {batch.scores.view(), batch.gradient.view()};
  }
  void backward(const auto& replica, const auto& /*loss*/) {
    const Batch& batch = replicas_[replica.local_index()];
    const auto slopes = slopes_.component(replica);
    for (float& slope : slopes) slope = 0;
    for (std::size_t i = 0; i < batch.gradient.size(); ++i) {
      float* const of_class = &slopes[i % classes * per_class];
      const float* const row = batch.x.data() + i / classes * inputs;
      for (std::size_t k = 0; k < inputs; ++k) of_class[k] += batch.gradient[i] * row[k];
      of_class[inputs] += batch.gradient[i];
    }
  }

 private:
  struct alignas(dist::cache_line) Batch {  // each replica writes its own
    dist::TensorView<const float> x;
    dist::Tensor<float> scores, gradient;
  };
  dist::DistributedVariable<float, dist::OnWrite, dist::None> weights_;
  dist::ReplicaBuffer<float> slopes_;
  std::vector<Batch> replicas_;
};
// [/network]

/// Points in the plane, in three sectors around a centre that is not the origin.
struct Points {
  explicit Points(std::size_t rows) : x({rows, inputs}), y({rows}) {
    const dist::RandomStream random{/*seed=*/2026};
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t k = 0; k < inputs; ++k) x[inputs * row + k] = 2 * random.uniform(inputs * row + k) - 1;
      const double angle = std::atan2(x[inputs * row + 1] - 0.2, x[inputs * row] + 0.1);
      y[row] = static_cast<std::int32_t>((angle + 3.1416) / 6.2832 * classes) % static_cast<std::int32_t>(classes);
    }
  }
  dist::Tensor<float> x;
  dist::Tensor<std::int32_t> y;
};

}  // namespace

int main() {
  const Points points{960};
  const std::string folder = std::filesystem::temp_directory_path() / "dist_example_14";
  // [fit]
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  LinearClassifier net{strategy};
  nn::Model model{strategy, net, nn::Adam{.learning_rate = 0.05F}, nn::SparseCategoricalCrossentropy{},
                  nn::SparseCategoricalAccuracy{}};
  model.fit(points.x, points.y, {.epochs = 20, .verbose = 0});
  const auto trained = model.evaluate(points.x, points.y, {.verbose = 0});

  dist::Checkpoint checkpoint{strategy};
  checkpoint.add("model", model).save(folder);  // weights, the optimizer's state, metrics
  // [/fit]
  std::printf("loss %.4f, accuracy %.4f\n", trained["loss"], trained["accuracy"]);
  check(trained["accuracy"] > 0.9, "the network classifies three sectors; guessing has an accuracy of 1/3");

  dist::Default alone;
  LinearClassifier same{alone};
  nn::Model again{alone, same, nn::Adam{.learning_rate = 0.05F}, nn::SparseCategoricalCrossentropy{},
                  nn::SparseCategoricalAccuracy{}};
  dist::Checkpoint restored{alone};
  restored.add("model", again).restore(folder);
  const auto before = net.parameters().read(strategy.scope()), after = same.parameters().read(alone.scope());
  for (std::size_t i = 0; i < before.size(); ++i) check(before[i] == after[i], "the weights are restored");
  check(again.optimizer().iterations(alone.scope()) == model.optimizer().iterations(strategy.scope()),
        "the state of the optimizer is restored");
  std::filesystem::remove_all(folder);

  // With one replica the sums have another order.
  LinearClassifier serial{alone};
  nn::Model by_one{alone, serial, nn::Adam{.learning_rate = 0.05F}, nn::SparseCategoricalCrossentropy{},
                   nn::SparseCategoricalAccuracy{}};
  by_one.fit(points.x, points.y, {.epochs = 20, .verbose = 0});
  const auto expected = by_one.evaluate(points.x, points.y, {.verbose = 0});
  check(std::abs(trained["loss"] - expected["loss"]) < 1e-4, "two replicas reach the same loss as one");
}
