// Reduction and update in one pass, compared with separate passes for all-reduce, scaling and update, with the number
// of parameters of the guide's CNN. The gradients are written before each call (not timed), and the slowest replica
// counts.
//
//   bench_updates [ROUNDS [JSON]]
#include <cstddef>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/optimizers/rmsprop.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/optimizers/with.hpp>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/mirrored.hpp>

#include "support/arguments.hpp"
#include "support/machine.hpp"
#include "support/rounds.hpp"
#include "support/updates.hpp"

namespace {

namespace nn = dist::nn;

using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;
using CentralStorage = dist::CentralStorage<dist::Cpu>;

constexpr std::size_t parameter_count = 2'770'634;
constexpr std::size_t replicas = 2;

/// The library's all-reduce, in place.
class AllReduce {
 public:
  explicit AllReduce(Mirrored& strategy)
      : strategy_(strategy), values_(strategy.buffer<float>(dist::Shape{parameter_count}, "values")) {}
  double operator()() {
    ++round_;
    return bench::time_of(
        strategy_, [&](auto& replica) { bench::write_gradient(replica, values_.component(replica), round_, 1); },
        [&](auto& replica) { replica.all_reduce(dist::sum, values_.component(replica)); });
  }

 private:
  Mirrored& strategy_;
  dist::ReplicaBuffer<float> values_;
  unsigned round_ = 0;
};

/// A minimal out-of-place sum: each replica adds its half of the inputs, and writes it to both outputs.
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
    return bench::time_of(
        strategy_, [&](auto& replica) { bench::write_gradient(replica, inputs_.component(replica), round_, 1); },
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

  /// Measures all ways for one optimizer, after a check that their weights agree.
  template <class O>
  void measure(const std::string& name, O optimizer, const std::string& mirrored_goal = "",
               const std::string& central_goal = "", bool with_limits = false) {
    bench::Rounds measured{name, "updates"};
    const auto unfused = std::make_shared<bench::Unfused<Mirrored, O>>(mirrored_, parameter_count, optimizer, true);
    const auto fused = std::make_shared<bench::Fused<Mirrored, O>>(mirrored_, parameter_count, optimizer);
    for (int i = 0; i < 3; ++i) (*unfused)(), (*fused)();
    bench::require_equal(name, unfused->weights(), fused->weights());
    const auto three_passes = measured.add_timed("all-reduce, scale, apply", [=] { return (*unfused)(); });
    const auto one_pass = measured.add_timed("one pass, Mirrored", [=] { return (*fused)(); });
    measured.ratio("Mirrored: one pass over three" + mirrored_goal, one_pass, three_passes);
    if constexpr (!nn::has_option<O, nn::GlobalClipNorm>) {
      const auto fused_central =
          std::make_shared<bench::Fused<CentralStorage, O>>(central_, parameter_count, optimizer);
      for (int i = 0; i < 3; ++i) (*fused_central)();
      bench::require_equal(name, fused->weights(), fused_central->weights());
      const auto central = measured.add_timed("one pass, CentralStorage", [=] { return (*fused_central)(); });
      measured.ratio("CentralStorage: one pass over three" + central_goal, central, three_passes);
    }
    if (with_limits) {
      const auto unscaled = std::make_shared<bench::Unfused<Mirrored, O>>(mirrored_, parameter_count, optimizer, false);
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

  void write(std::FILE* json) const { bench::print_json(json, results_); }

 private:
  int rounds_;
  Mirrored mirrored_{replicas};
  CentralStorage central_{replicas};
  std::vector<bench::Rounds> results_;
};

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments{argc, argv, 2, "[ROUNDS [JSON]]",
                                   "Compares one pass for reduction and update with several passes, by optimizer."};
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
