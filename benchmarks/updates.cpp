// Reduce and apply in one pass, against an all-reduce, a pass that scales and a pass that applies, on as many
// parameters as the guide's CNN has. Every replica writes its gradient anew before each call, which is not timed; the
// slowest replica counts.
//
//   bench_updates [ROUNDS [JSON]]
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dist/comm/memory/shared_memory_all_reduce.hpp>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/optimizers/adam_w.hpp>
#include <dist/nn/optimizers/rmsprop.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/optimizers/with.hpp>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/mirrored.hpp>

#include "support/arguments.hpp"
#include "support/rounds.hpp"

namespace {

namespace nn = dist::nn;

using Mirrored = dist::Mirrored<dist::SharedMemoryAllReduce>;
using CentralStorage = dist::CentralStorage<dist::Cpu>;

constexpr std::size_t parameter_count = 2'770'634;
constexpr std::size_t replicas = 2;

/// `share` of the gradient of a replica in a round: its sum over the replicas is exact.
void write_gradient(std::span<float> gradient, std::size_t replica, unsigned round, float share) {
  const float unit = share / 1024;
  const float base = static_cast<float>(round % 8) + static_cast<float>(replica) - 6.5f;
  for (std::size_t i = 0; i < gradient.size(); ++i)
    gradient[i] = unit * (base + static_cast<float>(static_cast<int>(i % 16)));
}

/// Seconds of `part(replica)` on the slowest replica, all starting together, after `prepare(replica)`.
template <class Strategy, class Prepare, class Part>
double time_of(Strategy& strategy, const Prepare& prepare, const Part& part) {
  return strategy.reduce(dist::max, strategy.run([&](auto& replica) {
    prepare(replica);
    replica.barrier();
    const double start = bench::seconds();
    part(replica);
    return bench::seconds() - start;
  }));
}

/// What an optimizer sees of a network.
template <class Strategy>
struct Network {
  using Parameters = decltype(std::declval<Strategy&>().template variable<float>(dist::Shape{}));
  using Gradients = decltype(std::declval<Strategy&>().template buffer<float>(dist::Shape{}));
  Parameters all_parameters;
  Gradients all_gradients;

  explicit Network(Strategy& strategy)
      : all_parameters(strategy.template variable<float>(dist::Shape{parameter_count}, 1.0f, "parameters")),
        all_gradients(strategy.template buffer<float>(dist::Shape{parameter_count}, "gradients")) {}
  Parameters& parameters() { return all_parameters; }
  Gradients& gradients() { return all_gradients; }
};

/// An optimizer's step. The gradients that are reduced and applied in one pass come scaled, as the loss is a part of
/// the global batch's.
template <class Strategy, class O>
class Fused {
 public:
  Fused(Strategy& strategy, O optimizer)
      : strategy_(strategy), network_(strategy), optimizer_(strategy, network_, optimizer) {}
  double operator()() {
    ++round_;
    return time_of(
        strategy_,
        [&](auto& replica) {
          write_gradient(network_.all_gradients.component(replica), replica.local_index(), round_, 1.0f / replicas);
        },
        [&](auto& replica) { optimizer_.apply_gradients(replica); });
  }
  [[nodiscard]] std::span<const float> weights() { return network_.all_parameters.component(strategy_.scope(), 0); }

 private:
  Strategy& strategy_;
  Network<Strategy> network_;
  nn::Optimizer<Strategy, Network<Strategy>, O> optimizer_;
  unsigned round_ = 0;
};

/// The same pass by pass, every replica for all of its own copy and with slots of its own. Without `scales` the
/// gradients come scaled, as they do for one pass.
template <class O>
class Unfused {
 public:
  Unfused(Mirrored& strategy, O optimizer, bool scales)
      : strategy_(strategy), network_(strategy), optimizer_(strategy, network_, optimizer), scales_(scales) {}
  double operator()() {
    ++round_;
    return time_of(
        strategy_,
        [&](auto& replica) {
          write_gradient(network_.all_gradients.component(replica), replica.local_index(), round_,
                         scales_ ? 1.0f : 1.0f / replicas);
        },
        [&](auto& replica) {
          const std::span<float> gradient = network_.all_gradients.component(replica);
          replica.all_reduce(dist::sum, gradient);
          if (scales_) replica.for_each(gradient.size(), [&](std::size_t i) { gradient[i] *= 1.0f / replicas; });
          optimizer_.apply_gradients(replica, nn::skip_aggregation);
        });
  }
  [[nodiscard]] std::span<const float> weights() { return network_.all_parameters.component(strategy_.scope(), 0); }

 private:
  Mirrored& strategy_;
  Network<Mirrored> network_;
  nn::Optimizer<Mirrored, Network<Mirrored>, O> optimizer_;
  bool scales_;
  unsigned round_ = 0;
};

/// The library's all-reduce, in place.
class AllReduce {
 public:
  explicit AllReduce(Mirrored& strategy)
      : strategy_(strategy), values_(strategy.buffer<float>(dist::Shape{parameter_count}, "values")) {}
  double operator()() {
    ++round_;
    return time_of(
        strategy_, [&](auto& replica) { write_gradient(values_.component(replica), replica.local_index(), round_, 1); },
        [&](auto& replica) { replica.all_reduce(dist::sum, values_.component(replica)); });
  }

 private:
  Mirrored& strategy_;
  dist::ReplicaBuffer<float> values_;
  unsigned round_ = 0;
};

/// Nothing but the sums: each replica adds its half of both inputs and writes it to both outputs, which are other
/// memory.
class BareOutOfPlace {
 public:
  explicit BareOutOfPlace(Mirrored& strategy)
      : strategy_(strategy),
        inputs_(strategy.buffer<float>(dist::Shape{parameter_count}, "inputs")),
        outputs_(strategy.buffer<float>(dist::Shape{parameter_count}, "outputs")) {}
  double operator()() {
    ++round_;
    const auto scope = strategy_.scope();
    const float* const a = inputs_.component(scope, 0).data();
    const float* const b = inputs_.component(scope, 1).data();
    float* const to_a = outputs_.component(scope, 0).data();
    float* const to_b = outputs_.component(scope, 1).data();
    return time_of(
        strategy_, [&](auto& replica) { write_gradient(inputs_.component(replica), replica.local_index(), round_, 1); },
        [&](auto& replica) {
          replica.barrier();
          const auto half = dist::shard_of(parameter_count, replica.local_index(), replicas, width);
          std::size_t i = half.begin;
          for (; i + width <= half.end; i += width) {
            const Vector sums = load(a + i) + load(b + i);
            store(to_a + i, sums);
            store(to_b + i, sums);
          }
          for (; i < half.end; ++i) to_a[i] = to_b[i] = a[i] + b[i];
          replica.barrier();
        });
  }

 private:
  static constexpr std::size_t width = 16;
  using Vector = float __attribute__((vector_size(width * sizeof(float)), may_alias));
  static const Vector& load(const float* from) { return *reinterpret_cast<const Vector*>(from); }
  static void store(float* to, const Vector& values) { *reinterpret_cast<Vector*>(to) = values; }

  Mirrored& strategy_;
  dist::ReplicaBuffer<float> inputs_;
  dist::ReplicaBuffer<float> outputs_;
  unsigned round_ = 0;
};

class Program {
 public:
  explicit Program(int rounds) : rounds_(rounds) {}

  /// All ways of one optimizer, once their weights agree.
  template <class O>
  void measure(const std::string& name, O optimizer, const std::string& mirrored_goal = "",
               const std::string& central_goal = "", bool with_limits = false) {
    bench::Rounds measured{name, "updates"};
    const auto unfused = std::make_shared<Unfused<O>>(mirrored_, optimizer, true);
    const auto fused = std::make_shared<Fused<Mirrored, O>>(mirrored_, optimizer);
    for (int i = 0; i < 3; ++i) (*unfused)(), (*fused)();
    require_equal(name, unfused->weights(), fused->weights());
    const auto three_passes = measured.add_timed("all-reduce, scale, apply", [=] { return (*unfused)(); });
    const auto one_pass = measured.add_timed("one pass, Mirrored", [=] { return (*fused)(); });
    measured.ratio("Mirrored: one pass over three" + mirrored_goal, one_pass, three_passes);
    if constexpr (!nn::has_option<O, nn::GlobalClipNorm>) {
      const auto fused_central = std::make_shared<Fused<CentralStorage, O>>(central_, optimizer);
      for (int i = 0; i < 3; ++i) (*fused_central)();
      require_equal(name, fused->weights(), fused_central->weights());
      const auto central = measured.add_timed("one pass, CentralStorage", [=] { return (*fused_central)(); });
      measured.ratio("CentralStorage: one pass over three" + central_goal, central, three_passes);
    }
    if (with_limits) {
      const auto unscaled = std::make_shared<Unfused<O>>(mirrored_, optimizer, false);
      const auto bare_sums = std::make_shared<BareOutOfPlace>(mirrored_);
      const auto sums = std::make_shared<AllReduce>(mirrored_);
      const auto two_passes = measured.add_timed("all-reduce, apply", [=] { return (*unscaled)(); });
      const auto bare = measured.add_timed("bare all-reduce, out of place", [=] { return (*bare_sums)(); });
      const auto in_place = measured.add_timed("all_reduce, in place", [=] { return (*sums)(); });
      measured.ratio("Mirrored: one pass over two", one_pass, two_passes);
      measured.ratio("time of one pass over the bare all-reduce (goal <= 1.1)", bare, one_pass);
      measured.ratio("time of one pass over all_reduce in place", in_place, one_pass);
    }
    measured.run(rounds_, 0.05, bench::quiet_cores(mirrored_));
    measured.print_table();
    results_.push_back(std::move(measured));
  }

  void write(std::FILE* json) const {
    for (std::size_t i = 0; i < results_.size(); ++i) {
      std::fputs(i == 0 ? "[\n" : ",\n", json);
      results_[i].print_json(json);
    }
    std::fputs("]\n", json);
  }

 private:
  static void require_equal(const std::string& name, std::span<const float> expected, std::span<const float> weights) {
    double largest = 0;
    for (std::size_t i = 0; i < expected.size(); ++i)
      largest = std::max(largest, std::abs(double{weights[i]} - double{expected[i]}) / std::abs(double{expected[i]}));
    if (largest < 1e-6) return;
    std::fprintf(stderr, "%s: weights differ by up to %g, relative, between ways that should agree\n", name.c_str(),
                 largest);
    std::exit(1);
  }

  int rounds_;
  Mirrored mirrored_{replicas};
  CentralStorage central_{replicas};
  std::vector<bench::Rounds> results_;
};

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments{argc, argv, 2, "[ROUNDS [JSON]]",
                                   "Gradients reduced and applied in one pass against several passes, by optimizer."};
  const bench::JsonFile json{arguments.text(1)};
  Program program{arguments.number(0, 20)};
  program.measure("SGD", nn::SGD{}, " (goal 1.7)", " (goal 3)", true);
  program.measure("SGD with momentum", nn::SGD{.momentum = 0.9f});
  program.measure("RMSprop", nn::RMSprop{});
  program.measure("Adam", nn::Adam{}, " (goal 1.8)", " (goal 2.4)");
  program.measure("AdamW", nn::AdamW{});
  program.measure("Adam, clipped by global norm", nn::With{nn::Adam{}, nn::GlobalClipNorm{.norm = 1.0f}});
  if (json.get() != nullptr) program.write(json.get());
}
