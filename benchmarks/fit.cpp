// Overhead of Model.fit over a hand-written training loop on the same data in memory, for the guide's CNN and for a
// tiny network, where the overhead dominates.
//
//   bench_fit [ROUNDS [JSON]]        all contenders in turns, ratios
//   bench_fit --only NAME [SECONDS]  one contender alone, for a profiler
#include <cstddef>
#include <memory>
#include <utility>

#include <dist/data.hpp>
#include <dist/dist.hpp>
#include <dist/nn.hpp>
#include <dist/nn/onednn/backend.hpp>
#include <dist/train.hpp>

#include "support/cnn_training.hpp"
#include "support/named_contenders.hpp"
#include "support/training.hpp"
#include "support/training_steps.hpp"

namespace {

namespace nn = dist::nn;
namespace data = dist::data;
using One = dist::OneDevice<dist::Cpu>;
using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;

constexpr std::size_t epochs = 2;

struct Tiny {
  using Architecture = nn::Sequential<nn::Input<8>, nn::Dense<8, nn::Relu>, nn::Dense<10>>;
  static constexpr std::size_t batch = 8;    // per replica
  static constexpr std::size_t steps = 500;  // per epoch
};
struct Guide {
  using Architecture = bench::Cnn;
  static constexpr std::size_t batch = 64;
  static constexpr std::size_t steps = 5;
};

template <class Case, class Strategy>
struct Run {
  using Network = nn::Network<typename Case::Architecture, nn::OneDnn>;

  template <class... Replicas>
  explicit Run(Replicas... replicas) : strategy(replicas...) {}

  static auto in_memory(std::size_t global_batch) {
    bench::Images images{Case::steps * global_batch, Case::Architecture::InputShape::shape()};
    return data::tensor_slices(std::move(images.x), std::move(images.y)) | data::batch(global_batch);
  }

  Strategy strategy;
  const std::size_t global_batch = Case::batch * strategy.num_replicas_in_sync();
  decltype(in_memory(1)) dataset = in_memory(global_batch);
  Network net{strategy, 1};
};

/// Trains for two epochs with fit, without output.
template <class Case, class Strategy>
struct Fit : Run<Case, Strategy> {
  using Run<Case, Strategy>::Run;

  double operator()() {
    model.fit(this->dataset, {.epochs = epochs, .verbose = 0});
    return epochs * Case::steps;
  }

  nn::Model<Strategy, typename Run<Case, Strategy>::Network, nn::SGD, nn::SparseCategoricalCrossentropy,
            nn::SparseCategoricalAccuracy>
      model{this->strategy, this->net, nn::SGD{.learning_rate = 1e-3F}, nn::SparseCategoricalCrossentropy{},
            nn::SparseCategoricalAccuracy{}};
};

/// Trains for two epochs with the loop of example 03.
template <class Case, class Strategy>
struct Loop : Run<Case, Strategy> {
  using Run<Case, Strategy>::Run;

  double operator()() {
    const auto step = [&](auto& replica, const auto& batch) {
      const auto logits = this->net.forward(replica, batch.x);
      const auto loss = nn::sparse_categorical_crossentropy(replica, logits, batch.y, this->global_batch);
      this->net.backward(replica, loss);
      optimizer.apply_gradients(replica);
      accuracy.update(replica, logits, batch.y);
      return loss;
    };
    auto batches = this->strategy.distribute_dataset(this->dataset);
    for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
      accuracy.reset(this->strategy.scope());
      double loss = 0;
      for (auto&& batch : batches) loss += this->strategy.reduce(dist::sum, this->strategy.run(step, batch));
      mean_loss = loss / Case::steps;
      measured_accuracy = accuracy.result(this->strategy.scope());
    }
    return epochs * Case::steps;
  }

  nn::Optimizer<Strategy, typename Run<Case, Strategy>::Network, nn::SGD> optimizer{this->strategy, this->net,
                                                                                    nn::SGD{.learning_rate = 1e-3F}};
  nn::Metric<Strategy, nn::SparseCategoricalAccuracy> accuracy{this->strategy, nn::SparseCategoricalAccuracy{}};
  double mean_loss = 0;
  double measured_accuracy = 0;
};

template <class Way, class... Replicas>
bench::Work make(Replicas... replicas) {
  return [way = std::make_shared<Way>(replicas...)] { return (*way)(); };
}

const bench::NamedContender contenders[] = {
    {"tiny_loop", "tiny network, 1 x 8, by hand", [] { return make<Loop<Tiny, One>>(); }},
    {"tiny_fit", "tiny network, 1 x 8, fit", [] { return make<Fit<Tiny, One>>(); }},
    {"tiny_loop_2", "tiny network, 2 x 8, by hand", [] { return make<Loop<Tiny, Mirrored>>(std::size_t{2}); }},
    {"tiny_fit_2", "tiny network, 2 x 8, fit", [] { return make<Fit<Tiny, Mirrored>>(std::size_t{2}); }},
    {"cnn_loop", "CNN, 1 x 64, by hand", [] { return make<Loop<Guide, One>>(); }},
    {"cnn_fit", "CNN, 1 x 64, fit", [] { return make<Fit<Guide, One>>(); }},
};

constexpr bench::Quotient quotients[] = {
    {"tiny network, 1 replica: fit over by hand", "tiny_fit", "tiny_loop"},
    {"tiny network, 2 replicas: fit over by hand", "tiny_fit_2", "tiny_loop_2"},
    {"CNN: fit over by hand (0.98)", "cnn_fit", "cnn_loop"},
};
constexpr bench::Difference differences[] = {
    {"tiny network, 1 replica: extra time of a step with fit (20)", "tiny_fit", "tiny_loop"},
    {"tiny network, 2 replicas: extra time of a step with fit (20)", "tiny_fit_2", "tiny_loop_2"},
    {"CNN: extra time of a step with fit (20)", "cnn_fit", "cnn_loop"},
};

}  // namespace

int main(int argc, char** argv) {
  return bench::compare_training_steps(
      argc, argv, contenders, quotients,
      {.title = "steps with Model.fit and by hand, SGD, (goal)",
       .help = "Times training steps with Model.fit and a hand-written loop, for all contenders in turns or for one.",
       .unit = "steps",
       .seconds = 0.2,
       .differences = differences});
}
