// Training that is saved after some steps and continued elsewhere. A strategy joins in a test file with one line:
//   TEST_CASE_TEMPLATE_INSTANTIATE(tracked_training, conformance::Make<dist::TheStrategy, replicas>, …);
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <conformance/make_strategy.hpp>
#include <conformance/variable_whole.hpp>
#include <dist/nn/layers/batch_normalization.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/losses/sparse_categorical_crossentropy.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/adam.hpp>

#include <doctest/doctest.h>
#include <support/saved.hpp>

namespace conformance {

/// A network, its optimizer, and the number of training steps. Every replica computes the same batch.
template <class S, class Function, class Storage = dist::nn::StoredGradients>
class TrackedTraining {
  using Layers = dist::nn::Sequential<dist::nn::Input<6>, dist::nn::Dense<40, dist::nn::Relu>,
                                      dist::nn::BatchNormalization<>, dist::nn::Dense<5>>;

 public:
  TrackedTraining(S& strategy, Function function, std::uint64_t seed = 1)
      : strategy_(strategy), network_(strategy, seed), optimizer_(strategy, network_, function) {}

  void train(int steps) {
    dist::Tensor<double> x{{4, 6}};
    dist::Tensor<std::int32_t> labels{{4}};
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>((i * 7) % 11) / 11;
    for (std::size_t i = 0; i < 4; ++i) labels[i] = static_cast<std::int32_t>(i);
    for (int step = 0; step < steps; ++step)
      strategy_.run([&](auto& replica) {
        const auto outputs = network_.forward(replica, x);
        const auto loss =
            dist::nn::sparse_categorical_crossentropy(replica, outputs, labels, 4 * replica.num_replicas_in_sync());
        network_.backward(replica, loss);
        optimizer_.apply_gradients(replica);
      });
  }

  void track(auto& visit) {
    visit("network", network_);
    visit("optimizer", optimizer_);
  }

 private:
  S& strategy_;
  dist::nn::Network<Layers, dist::nn::Reference, double, Storage> network_;
  dist::nn::Optimizer<S, decltype(network_), Function> optimizer_;
};

/// Returns the largest difference between two saved states under `key`.
inline double difference(const support::Saved& one, const support::Saved& other, const std::string& key) {
  const auto a = one.template get<double>(key);
  const auto b = other.template get<double>(key);
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

/// `same_bits` is true if continuing gives the same bits as not stopping. It is false if gradients are pending: their
/// sum is restored to one replica, and rounded differently.
template <class S, class Function, class Storage = dist::nn::StoredGradients>
void check_tracked_training(std::unique_ptr<S> (*make)(), Function function, bool same_bits = true) {
  using Training = TrackedTraining<S, Function, Storage>;
  const auto strategy = make();
  Training training{*strategy, function};
  training.train(5);
  const support::Saved kept{*strategy, training};
  training.train(3);
  const support::Saved expected{*strategy, training};
  const std::vector<std::string> keys = kept.keys();
  const auto has = [&](const std::string& key) { return std::find(keys.begin(), keys.end(), key) != keys.end(); };
  CHECK((has("network/dense_1/kernel") && has("network/batch_normalization/moving_mean")));
  CHECK((has("optimizer/iterations") && has("optimizer/learning_rate")));
  CHECK((has("optimizer/momentum/dense_1/kernel") && !has("optimizer/momentum")));
  for (std::size_t replicas = 1; replicas <= 4; ++replicas) {
    CAPTURE(replicas);
    const auto other = with_replicas<S>(replicas);
    Training restored{*other, function, 2};
    kept.restore(*other, restored);
    const support::Saved again{*other, restored};
    for (const std::string& key : keys)
      if (same_bits || !key.starts_with("optimizer/accumulated/total/")) CHECK_MESSAGE(again.same(kept, key), key);
    restored.train(3);
    const support::Saved trained{*other, restored};
    for (const char* key :
         {"network/dense/kernel", "network/dense_1/kernel", "network/batch_normalization/moving_mean"})
      CHECK(difference(trained, expected, key) < 1e-9);
    // Then back to the first strategy.
    Training back{*strategy, function, 3};
    again.restore(*strategy, back);
    back.train(3);
    const support::Saved returned{*strategy, back};
    if (same_bits)
      for (const std::string& key : keys) CHECK_MESSAGE(returned.same(expected, key), key);
    CHECK(difference(returned, expected, "network/dense/kernel") < 1e-9);
  }
}

}  // namespace conformance

TEST_CASE_TEMPLATE_DEFINE("saved training continues with other numbers of replicas", Maker, tracked_training) {
  namespace nn = dist::nn;
  conformance::check_tracked_training(&Maker::make, nn::Adam{});
  conformance::check_tracked_training(&Maker::make, nn::With{nn::Adam{}, nn::AccumulateGradients{2}}, false);
}
