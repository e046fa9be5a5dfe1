// Cost of the abstraction: instructions per training step of a linear model under Default and in hand-written code.
// Run it under callgrind with two step counts, and take the difference:
//
//   valgrind --tool=callgrind --callgrind-out-file=/dev/null bench_abstraction default 1000
//
// benchmarks/run prints the ratio. The program itself checks that both ways compute the same numbers.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <dist/dist.hpp>

#include "support/arguments.hpp"

namespace {

constexpr std::size_t features = 512;
constexpr std::size_t batch = 64;
constexpr float rate = 1e-4f;

/// Features by row, so that the loops over examples can be vectorised.
struct Data {
  std::vector<float> x = std::vector<float>(features * batch);
  std::vector<float> y = std::vector<float>(batch);
  Data() {
    const dist::RandomStream random{7};
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = random.normal(i);
    for (std::size_t n = 0; n < batch; ++n) y[n] = x[n] - 2 * x[batch + n];
  }
};

struct Result {
  float weight;
  double loss;
};

__attribute__((noinline)) Result by_hand(const Data& data, int steps) {
  std::vector<float> weights_memory(features), gradients_memory(features), errors_memory(batch);
  // No aliasing, as for_each promises to the compiler.
  float* __restrict__ weights = weights_memory.data();
  float* __restrict__ gradients = gradients_memory.data();
  float* __restrict__ errors = errors_memory.data();
  const float* __restrict__ x = data.x.data();
  double total_loss = 0;
  for (int step = 0; step < steps; ++step) {
    for (std::size_t n = 0; n < batch; ++n) errors[n] = -data.y[n];
    for (std::size_t f = 0; f < features; ++f)
      for (std::size_t n = 0; n < batch; ++n) errors[n] += weights[f] * x[f * batch + n];
    float loss = 0;
    for (std::size_t n = 0; n < batch; ++n) loss += errors[n] * errors[n];
    for (std::size_t f = 0; f < features; ++f) {
      float lanes[8] = {};
      for (std::size_t n = 0; n < batch; n += 8)
        for (std::size_t lane = 0; lane < 8; ++lane) lanes[lane] += errors[n + lane] * x[f * batch + n + lane];
      float gradient = 0;
      for (const float lane : lanes) gradient += lane;
      gradients[f] = gradient;
    }
    for (std::size_t f = 0; f < features; ++f) weights[f] -= rate * gradients[f];
    total_loss += static_cast<double>(loss);
  }
  return {weights[0], total_loss};
}

template <class Strategy>
__attribute__((noinline)) Result with(Strategy& strategy, const Data& data, int steps) {
  auto weights = strategy.template variable<float>(dist::Shape{features}, 0.0f, "weights");
  auto gradients = strategy.template variable<float, dist::OnRead, dist::Sum>(dist::Shape{features}, 0.0f, "gradients");
  auto errors = strategy.template variable<float, dist::OnRead, dist::None>(dist::Shape{batch}, 0.0f, "errors");
  auto total_loss = strategy.template variable<double, dist::OnRead, dist::Sum>(dist::Shape{}, 0.0, "loss");

  const auto step = [&](auto& replica) {
    const auto w = weights.component(replica);
    const auto g = gradients.component(replica);
    const auto e = errors.component(replica);
    replica.for_each(batch, [&](std::size_t n) { e[n] = -data.y[n]; });
    for (std::size_t f = 0; f < features; ++f)
      replica.for_each(batch, [&](std::size_t n) { e[n] += w[f] * data.x[f * batch + n]; });
    float loss = 0;
    for (std::size_t n = 0; n < batch; ++n) loss += e[n] * e[n];
    for (std::size_t f = 0; f < features; ++f)
      g[f] = replica.transform_reduce(dist::sum, dist::IndexRange{0, batch},
                                      [&](std::size_t n) { return e[n] * data.x[f * batch + n]; });
    replica.reduce_and_apply(dist::sum, g, w,
                             [](std::size_t, float weight, float gradient) { return weight - rate * gradient; });
    total_loss.assign_add(replica, replica.all_reduce(dist::sum, loss));
  };
  for (int i = 0; i < steps; ++i) strategy.run(step);
  const auto outside = strategy.scope();
  return {weights.read(outside)[0], total_loss.value(outside)};
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments{
      argc, argv, 2, "[hand|default [STEPS]]",
      "Runs one way alone, for callgrind. Without arguments, checks that both compute the same."};
  const Data data;
  const int steps = arguments.number(1, 100);
  if (argc > 1 && std::strcmp(argv[1], "hand") != 0 && std::strcmp(argv[1], "default") != 0)
    arguments.refuse(std::string{"unknown way '"} + argv[1] + "'");
  dist::Default strategy;
  if (argc > 1 && std::strcmp(argv[1], "hand") == 0) return by_hand(data, steps).loss >= 0 ? 0 : 1;
  if (argc > 1 && std::strcmp(argv[1], "default") == 0) return with(strategy, data, steps).loss >= 0 ? 0 : 1;

  const Result hand = by_hand(data, steps);
  const Result ours = with(strategy, data, steps);
  std::printf("by hand: weight %.6f loss %.6f\ndefault: weight %.6f loss %.6f\n", static_cast<double>(hand.weight),
              hand.loss, static_cast<double>(ours.weight), ours.loss);
  return std::abs(hand.weight - ours.weight) <= 1e-5f && std::abs(hand.loss - ours.loss) <= 1e-5 * hand.loss ? 0 : 1;
}
