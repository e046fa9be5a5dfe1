// A generative adversarial network on two replicas. A generator turns noise into points, and a critic scores points as
// real or generated. The generator's gradient is the input gradient of the critic.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <set>

#include <dist/dist.hpp>
#include <dist/nn.hpp>

#include "backend.hpp"
#include "check.hpp"
#include "quick.hpp"

namespace {

namespace nn = dist::nn;

constexpr std::size_t global_batch = 64;
constexpr std::size_t critic_steps = 3;  // for each step of the generator
constexpr double pi = 3.14159265358979;

using Generator = nn::Sequential<nn::Input<2>, nn::Dense<64, nn::Relu>, nn::Dense<64, nn::Relu>, nn::Dense<2>>;
using Critic = nn::Sequential<nn::Input<2>, nn::Dense<64, nn::Relu>, nn::Dense<64, nn::Relu>, nn::Dense<1>>;

/// The input of the generator for these rows of a step's global batch. It does not depend on the number of replicas.
dist::Tensor<float> noise(std::size_t step, dist::IndexRange rows) {
  const dist::RandomStream random{/*seed=*/1, /*stream=*/step};
  dist::Tensor<float> points{{rows.size(), 2}};
  for (std::size_t i = 0; i < points.size(); ++i) points[i] = random.normal<float>(2 * rows.begin + i);
  return points;
}
/// Real points: on a circle of radius 1.
dist::Tensor<float> circle(std::size_t step, dist::IndexRange rows) {
  const dist::RandomStream random{/*seed=*/2, /*stream=*/step};
  dist::Tensor<float> points{{rows.size(), 2}};
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const double angle = 2 * pi * random.uniform<double>(rows.begin + row);
    points[2 * row] = static_cast<float>(std::cos(angle));
    points[2 * row + 1] = static_cast<float>(std::sin(angle));
  }
  return points;
}
/// Targets of the critic: 1 for the first rows, 0 for the others.
dist::Tensor<float> first_are_real(std::size_t real, std::size_t generated) {
  dist::Tensor<float> targets{{real + generated, 1}};
  std::fill_n(targets.data(), real, 1.0F);
  return targets;
}

/// Trains both networks, and returns points of the generator.
dist::Tensor<float> train(std::size_t replicas, std::size_t steps) {
  // [critic]
  dist::Mirrored<dist::ThreadAllReduce> strategy{replicas};
  nn::Network<Generator, Backend> generator{strategy, /*seed=*/3};
  nn::Network<Critic, Backend> critic{strategy, /*seed=*/4};
  const nn::Adam adam{.learning_rate = 1e-3F, .beta_1 = 0.5F};
  nn::Optimizer of_generator{strategy, generator, adam};
  nn::Optimizer of_critic{strategy, critic, adam};

  const auto critic_step = [&](auto& replica, std::size_t step) {
    const auto rows = dist::shard_of(global_batch, replica.replica_id().index(), replica.num_replicas_in_sync());
    const auto real = circle(step, rows), from = noise(step, rows);
    const auto generated = generator.forward(replica, from).values;
    dist::Tensor<float> points{{2 * rows.size(), 2}};
    std::copy_n(real.data(), real.size(), points.data());
    std::copy_n(generated.data(), generated.size(), points.data() + real.size());

    const auto scores = critic.forward(replica, points);
    const auto targets = first_are_real(rows.size(), rows.size());
    const auto loss = nn::compute_loss(nn::BinaryCrossentropy{}, replica, scores, targets, 2 * global_batch);
    critic.backward(replica, loss);
    of_critic.apply_gradients(replica);
    return loss;
  };
  // [/critic]
  // [generator]
  const auto generator_step = [&](auto& replica, std::size_t step) {
    const auto rows = dist::shard_of(global_batch, replica.replica_id().index(), replica.num_replicas_in_sync());
    const auto from = noise(step, rows);
    const auto generated = generator.forward(replica, from).values;
    const auto scores = critic.forward(replica, generated);
    const auto targets = first_are_real(rows.size(), 0);  // the generator wants its points to pass for real ones
    const auto loss = nn::compute_loss(nn::BinaryCrossentropy{}, replica, scores, targets, global_batch);
    const auto gradient = critic.backward(replica, loss, nn::only_input_gradient);  // of the generated points
    generator.backward(replica, gradient);
    of_generator.apply_gradients(replica);
    return loss;
  };
  // [/generator]

  float of_generated = 0, of_points = 0;
  for (std::size_t step = 0, batch = 0; step < steps; ++step) {
    for (std::size_t i = 0; i < critic_steps; ++i)
      of_points = strategy.reduce(dist::sum, strategy.run(critic_step, batch++));
    of_generated = strategy.reduce(dist::sum, strategy.run(generator_step, batch++));
  }
  std::printf("%zu replicas, %zu steps: loss of the critic %.4f, of the generator %.4f\n", replicas, steps, of_points,
              of_generated);

  const auto from = noise(/*step=*/1'000'000, {0, 1'000});
  const auto points = strategy.run(
      [&](auto& replica) { return dist::Tensor<float>{generator.forward(replica, from, nn::inference).values}; });
  return strategy.local_results(points)[0];
}

}  // namespace

int main() {
  const auto points = train(/*replicas=*/2, quick() ? 800 : 4'000);
  double distance = 0;
  std::set<int> octants;
  for (std::size_t row = 0; row < points.rows(); ++row) {
    const double x = points[2 * row], y = points[2 * row + 1];
    distance += std::abs(std::hypot(x, y) - 1) / static_cast<double>(points.rows());
    octants.insert(static_cast<int>(std::floor(std::atan2(y, x) * 4 / pi)) & 7);
  }
  std::printf("mean distance to the circle %.4f, points in %zu of 8 octants\n", distance, octants.size());
  check(distance <= 0.15, "generated points are near the circle");
  check(octants.size() == 8, "generated points are in all eight octants");

  const auto by_two = train(2, 50), by_one = train(1, 50);
  for (std::size_t i = 0; i < by_one.size(); ++i)
    check(std::abs(by_two[i] - by_one[i]) < 1e-4F, "two replicas train the networks of one");
}
