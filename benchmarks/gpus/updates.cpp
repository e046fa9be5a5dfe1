// Adam on replicas that share a GPU: gradients reduced and applied in one kernel, compared with a reduction and Adam
// on every replica, and with a copy of the minimum number of bytes. Then a step as a graph, compared with its
// kernels.
//
//   [ROUNDS [KIBIPARAMETERS [JSON]]]
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <dist/comm/cuda/policies.cuh>
#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/device/cuda/device.cuh>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/strategy/step_graph.hpp>

#include "../support/arguments.hpp"
#include "../support/main.hpp"
#include "../support/rounds.hpp"
#include "../support/updates.hpp"
#include "copies.hpp"

namespace {

namespace nn = dist::nn;
using Strategy = dist::Mirrored<dist::DirectAllReduce, dist::Cuda>;

/// Elements read and written per parameter by the fused kernel: it reads the gradients of all replicas, a weight and
/// Adam's two slots, and writes the weights of all replicas and the slots.
constexpr std::size_t moved_elements(std::size_t replicas) { return (replicas + 3) + (replicas + 2); }

/// A minimal training step: each replica writes its gradient, and all apply the update.
class Step {
 public:
  Step(Strategy& strategy, std::size_t parameters)
      : strategy_(strategy), network_(strategy, parameters), optimizer_(strategy, network_, nn::Adam{}) {
    by_kernels();  // initialization that cannot be captured
  }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  double by_kernels() {
    return time([&](const auto& step) { strategy_.run(step); });
  }
  double by_graph() {
    return time([&](const auto& step) { graph_.run(step); });
  }
  [[nodiscard]] std::size_t instantiations() const { return graph_.instantiations(); }

 private:
  /// Returns the seconds of `run(step)` including the wait for all queues.
  template <class Run>
  double time(const Run& run) {
    ++round_;
    const double start = bench::seconds();
    run([&](auto& replica) {
      bench::write_gradient(replica, network_.all_gradients.component(replica), round_,
                            1.0f / static_cast<float>(strategy_.num_replicas_in_sync()));
      optimizer_.apply_gradients(replica);
    });
    for (std::size_t replica = 0; replica < strategy_.num_local_replicas(); ++replica)
      strategy_.queues()[replica].wait();
    return bench::seconds() - start;
  }

  Strategy& strategy_;
  bench::ParametersOnly<Strategy> network_;
  nn::Optimizer<Strategy, bench::ParametersOnly<Strategy>, nn::Adam> optimizer_;
  dist::StepGraph<Strategy> graph_{strategy_};
  unsigned round_ = 0;
};

bench::Rounds measure_passes(Strategy& strategy, std::size_t parameters, int rounds, const char* goal) {
  const std::size_t replicas = strategy.num_replicas_in_sync();
  bench::Rounds measured{dist::concat("Adam, ", parameters, " parameters, ", replicas, " replicas on one GPU"),
                         "updates"};
  const auto unfused = std::make_shared<bench::Unfused<Strategy, nn::Adam>>(strategy, parameters, nn::Adam{}, false);
  const auto fused = std::make_shared<bench::Fused<Strategy, nn::Adam>>(strategy, parameters, nn::Adam{});
  for (int round = 0; round < 3; ++round) (*unfused)(), (*fused)();
  bench::require_equal(dist::concat(replicas, " replicas"), unfused->weights(), fused->weights());
  const auto copy = std::make_shared<bench::Copy>(parameters * moved_elements(replicas) / 2);

  const auto two_passes = measured.add_timed("all-reduce, then Adam on every replica", [=] { return (*unfused)(); });
  const auto one_pass = measured.add_timed("reduced and applied by one kernel", [=] { return (*fused)(); });
  const auto limit = measured.add_timed(dist::concat("copy of ", moved_elements(replicas), " x 4 B per parameter"),
                                        [=] { return (*copy)(); });
  measured.ratio(dist::concat("one kernel over two passes", goal), one_pass, two_passes);
  measured.ratio("one kernel: share of the copy bandwidth (goal 0.85)", one_pass, limit);
  measured.run(rounds, 0.05, bench::steady_memory(parameters));
  measured.print_table();
  return measured;
}

bench::Rounds measure_graph(Strategy& strategy, std::size_t parameters, int rounds, std::size_t gate) {
  const std::size_t replicas = strategy.num_replicas_in_sync();
  bench::Rounds measured{dist::concat("A step of ", 2 * replicas, " kernels, ", parameters, " parameters, ", replicas,
                                      replicas == 1 ? " replica" : " replicas", " on one GPU"),
                         "steps"};
  const auto step = std::make_shared<Step>(strategy, parameters);
  const auto kernels = measured.add_timed("launched kernel by kernel", [=] { return step->by_kernels(); });
  const auto graph = measured.add_timed("captured, one launch", [=] { return step->by_graph(); });
  measured.ratio("captured over kernel by kernel", graph, kernels);
  measured.run(rounds, 0.05, bench::steady_memory(gate));
  measured.print_table();
  std::printf("  graph instantiations for all captured steps: %zu\n", step->instantiations());
  return measured;
}

int run(int rounds, std::size_t parameters, std::FILE* json) {
  if (dist::Cuda::count() > 1)
    throw dist::InvalidArgument(
        dist::concat("This benchmark needs replicas that share one GPU, but there are ", dist::Cuda::count()),
        "replicas use separate GPUs if possible", "Set CUDA_VISIBLE_DEVICES to one device");
  const std::size_t small = std::min(parameters, std::size_t{64} << 10);
  Strategy one{1}, two{2}, four{4};
  std::vector<bench::Rounds> results;  // destroyed before the strategies, which they use
  results.push_back(measure_passes(two, parameters, rounds, " (goal 1.8)"));
  results.push_back(measure_passes(four, parameters, rounds, " (goal 2.3)"));
  results.push_back(measure_graph(one, small, rounds, parameters));
  results.push_back(measure_graph(two, small, rounds, parameters));
  results.push_back(measure_graph(four, small, rounds, parameters));
  if (json != nullptr) bench::print_json(json, results);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments{
      argc, argv, 3, "[ROUNDS [KIBIPARAMETERS [JSON]]]",
      "Times Adam of 2 and 4 replicas on one GPU: gradients reduced and applied in one kernel, or "
      "in two passes; steps as graphs."};
  const int rounds = arguments.number(0, 15);
  const std::size_t parameters = static_cast<std::size_t>(arguments.number(1, 64 << 10)) << 10;
  const bench::JsonFile json{arguments.text(2)};
  return bench::main_of([&] { return run(rounds, parameters, json.get()); });
}
