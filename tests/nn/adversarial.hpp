/// A generator and a critic that train against each other, in steps for any strategy and back end.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include <dist/core/index_range.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/data/example.hpp>
#include <dist/nn/activations/smooth.hpp>
#include <dist/nn/layers/add.hpp>
#include <dist/nn/layers/batch_normalization.hpp>
#include <dist/nn/layers/dense.hpp>
#include <dist/nn/losses/binary_crossentropy.hpp>
#include <dist/nn/network.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/sequential.hpp>

#include <doctest/doctest.h>

namespace adversarial {

namespace nn = dist::nn;

using Generator = nn::Sequential<nn::Input<2>, nn::Dense<6, nn::Tanh>, nn::Dense<3, nn::Tanh>>;
/// Layers of all kinds: with a kernel, with branches, and with parameters whose gradients are always computed.
using Critic = nn::Sequential<nn::Input<3>, nn::Residual<nn::Dense<3, nn::Tanh>>,
                              nn::BatchNormalization<nn::SynchronizedStatistics>, nn::Dense<5, nn::Relu>, nn::Dense<1>>;
constexpr std::size_t rows = 11;  // of a global batch
constexpr int phases = 3, steps = 4 * phases;

/// The step of the critic on real rows or on generated ones, or the step of the generator.
enum class Phase { critic_on_real, critic_on_generated, generator };
[[nodiscard]] inline Phase phase_of(int step) { return static_cast<Phase>(step % phases); }

using Batch = dist::data::Example<dist::Tensor<float>, dist::Tensor<float>>;

/// Rows `first` to `first + count` of a step's global batch: points or noise, and whether the critic is to score the
/// points as real.
[[nodiscard]] inline Batch batch_of(int step, std::size_t first, std::size_t count) {
  const bool is_real = phase_of(step) == Phase::critic_on_real;
  const std::size_t width = is_real ? Critic::InputShape::elements : Generator::InputShape::elements;
  Batch batch{dist::Tensor<float>{dist::Shape{count, width}}, dist::Tensor<float>{dist::Shape{count, 1}}};
  for (std::size_t i = 0; i < batch.x.size(); ++i)
    batch.x[i] = static_cast<float>(std::sin(0.7 * static_cast<double>(i + first * width) + step));
  for (float& target : batch.y.elements()) target = phase_of(step) == Phase::critic_on_generated ? 0 : 1;
  return batch;
}
/// Both networks and their optimizers on a strategy.
template <class Backend, class S>
struct Pair {
  using G = nn::Network<Generator, Backend>;
  using C = nn::Network<Critic, Backend>;
  using Function = nn::SGD;

  explicit Pair(S& strategy)
      : generator{strategy, 3},
        critic{strategy, 4},
        of_generator{strategy, generator, function},
        of_critic{strategy, critic, function} {}

  /// Trained parameters and state.
  [[nodiscard]] std::vector<float> values(S& strategy) {
    std::vector<float> all;
    const auto add = [&](const auto& network, const auto& layout) {
      for (const nn::Parameter& parameter : layout) {
        const auto tensor = network.parameter(strategy.scope(), parameter.name());
        all.insert(all.end(), tensor.elements().begin(), tensor.elements().end());
      }
    };
    add(generator, generator.layout());
    add(critic, critic.layout());
    return all;
  }

  static constexpr Function function{.learning_rate = 0.2F, .momentum = 0.5F};
  G generator;
  C critic;
  nn::Optimizer<S, G, Function> of_generator;
  nn::Optimizer<S, C, Function> of_critic;
};

/// The values of a network's outputs, which are a traced array in a compiled step.
template <class Outputs>
[[nodiscard]] auto values_of(const Outputs& outputs) {
  if constexpr (nn::DifferentiableOutputs<Outputs>)
    return outputs.values;
  else
    return outputs;
}

/// Trains one of the networks, and returns the loss.
template <class Replica, class G, class C, class OfG, class OfC>
auto take_step(Replica& replica, G& generator, C& critic, OfG& of_generator, OfC& of_critic, Phase phase, const auto& x,
               const auto& targets) {
  const auto loss_of = [&](const auto& scores) {
    return nn::compute_loss(nn::BinaryCrossentropy{}, replica, scores, targets, nn::GlobalBatchSize{rows});
  };
  const auto train_critic = [&](const auto& points) {
    const auto loss = loss_of(critic.forward(replica, points));
    critic.backward(replica, loss);
    of_critic.apply_gradients(replica);
    return loss;
  };
  if (phase == Phase::critic_on_real) return train_critic(x);
  const auto generated = values_of(generator.forward(replica, x));
  if (phase == Phase::critic_on_generated) return train_critic(generated);
  const auto loss = loss_of(critic.forward(replica, generated));
  generator.backward(replica, critic.backward(replica, loss, nn::only_input_gradient));
  of_generator.apply_gradients(replica);
  return loss;
}

/// Trains on a strategy, and returns all parameters.
template <class Backend, class S>
std::vector<float> train(S& strategy) {
  Pair<Backend, S> pair{strategy};
  const auto on_devices = [&](const dist::Tensor<float>& values) {
    auto buffer = strategy.template buffer<float>(values.shape(), "batch");
    for (std::size_t local = 0; local < strategy.num_local_replicas(); ++local) {
      const auto queue = strategy.scope().queue(local);
      queue.copy(values.elements(), buffer.component(strategy.scope(), local));
      queue.wait();
    }
    return buffer;
  };
  for (int step = 0; step < steps; ++step) {
    const Batch batch = batch_of(step, 0, rows);
    const auto x = on_devices(batch.x), targets = on_devices(batch.y);
    strategy.run([&](auto& replica) {
      const auto part = dist::shard_of(rows, replica.replica_id().index(), replica.num_replicas_in_sync());
      const auto part_of = [&](const auto& buffer) {
        const dist::TensorView<const float, typename S::Device::Space> all{buffer.component(replica).data(),
                                                                           buffer.shape()};
        return all.rows(part.begin, part.size());
      };
      take_step(replica, pair.generator, pair.critic, pair.of_generator, pair.of_critic, phase_of(step), part_of(x),
                part_of(targets));
    });
  }
  return pair.values(strategy);
}

inline void check_same(const std::vector<float>& trained, const std::vector<float>& expected) {
  REQUIRE(trained.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(trained[i] == doctest::Approx(expected[i]).epsilon(1e-4).scale(1e-2));
}

}  // namespace adversarial
