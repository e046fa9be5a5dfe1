// The training step of the guide's CNN on one GPU with data in its memory: with float, with each step as a graph, and
// with 16-bit factors.
//
//   [ROUNDS [BATCH [STEPS [JSON]]]]       all contenders in turns, ratios; waits for the queue after STEPS steps
//   --only NAME [SECONDS [BATCH [STEPS]]] one contender alone, for profilers and benchmarks/peers/gpu_frameworks
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/float16.hpp>
#include <dist/core/tensor.hpp>
#include <dist/device/cuda/device.cuh>
#include <dist/dist.hpp>
#include <dist/nn.hpp>
#include <dist/nn/cuda/backend.cuh>
#include <dist/strategy/step_graph.hpp>

#include "../support/arguments.hpp"
#include "../support/cnn_training.hpp"
#include "../support/main.hpp"
#include "../support/named_contenders.hpp"
#include "../support/rounds.hpp"
#include "copies.hpp"

namespace {

namespace nn = dist::nn;
using Strategy = dist::OneDevice<dist::Cuda>;
using Mixed = nn::MixedPrecision<nn::Cuda, dist::BFloat16>;

/// A tensor in GPU memory.
template <class T>
class Uploaded {
 public:
  Uploaded(Strategy& strategy, const dist::Tensor<T>& values)
      : buffer_(strategy.template buffer<T>(values.shape(), "batch")) {
    const auto queue = strategy.scope().queue(0);
    queue.copy(values.elements(), buffer_.component(strategy.scope(), 0));
    queue.wait();
  }
  [[nodiscard]] auto view(const auto& replica) const {
    return dist::TensorView<const T, dist::Cuda::Space>{buffer_.component(replica).data(), buffer_.shape()};
  }

 private:
  decltype(std::declval<Strategy&>().template buffer<T>(dist::Shape{})) buffer_;
};

/// Launch mode of a step's kernels.
enum class Launch { kernel_by_kernel, graph };

template <class Backend>
class Training {
 public:
  Training(const bench::Images& images, std::size_t steps, Launch launch)
      : x_(strategy_, images.x), y_(strategy_, images.y), rows_(images.x.rows()), steps_(steps), launch_(launch) {
    if (launch == Launch::graph)
      strategy_.run([&](auto& replica) { step(replica); });  // initialization that cannot be captured
  }
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  /// Runs the steps and waits for the queue. Returns the number of images.
  double operator()() {
    const auto on_replica = [&](auto& replica) { step(replica); };
    for (std::size_t each = 0; each < steps_; ++each)
      if (launch_ == Launch::graph)
        graph_.run(on_replica);
      else
        strategy_.run(on_replica);
    strategy_.queues()[0].wait();
    return static_cast<double>(steps_ * rows_);
  }

 private:
  void step(auto& replica) { training_.step(replica, x_.view(replica), y_.view(replica), rows_); }

  Strategy strategy_;
  Uploaded<float> x_;
  Uploaded<std::int32_t> y_;
  std::size_t rows_;
  std::size_t steps_;
  Launch launch_;
  bench::TrainingBy<Backend, Strategy> training_{strategy_};
  dist::StepGraph<Strategy> graph_{strategy_};
};

template <class Backend>
bench::NamedContender contender(std::string_view name, const char* title, std::size_t batch, std::size_t steps,
                                Launch launch = Launch::kernel_by_kernel) {
  return {name, title, [=] {
            const auto training = std::make_shared<Training<Backend>>(bench::Images{batch}, steps, launch);
            return [=] { return (*training)(); };
          }};
}

std::array<bench::NamedContender, 3> contenders(std::size_t batch, std::size_t steps) {
  return {contender<nn::Cuda>("float", "float", batch, steps),
          contender<nn::Cuda>("graph", "float, each step a graph", batch, steps, Launch::graph),
          contender<Mixed>("bfloat16", "products of BFloat16 factors", batch, steps)};
}
constexpr bench::Quotient quotients[] = {{"a graph over kernel by kernel", "graph", "float"},
                                         {"BFloat16 over float", "bfloat16", "float"}};

int run_all(int rounds, std::size_t batch, std::size_t steps, std::FILE* json) {
  bench::Rounds measured{dist::concat("CNN training step, SGD, one GPU, batch ", batch), "images"};
  bench::add(measured, contenders(batch, steps), quotients);
  measured.run(rounds, 0.1, bench::steady_memory((std::size_t{256} << 10) * batch));
  measured.print_table();
  if (json != nullptr) measured.print_json(json);
  return 0;
}

constexpr std::size_t usual_batch = 512, usual_steps = 10;

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2 && std::string_view(argv[1]) == "--only") {
    const bench::Arguments rest{argc - 1, argv + 1, 4, "NAME [SECONDS [BATCH [STEPS]]]", "Times one contender alone."};
    const auto batch = static_cast<std::size_t>(rest.number(2, usual_batch));
    const auto steps = static_cast<std::size_t>(rest.number(3, usual_steps));
    return bench::main_of(
        [&] { return bench::run_alone(contenders(batch, steps), rest.text(0), rest.number(1, 2), "images"); });
  }
  const bench::Arguments arguments{
      argc, argv, 4, "[ROUNDS [BATCH [STEPS [JSON]]]] | --only NAME [SECONDS [BATCH [STEPS]]]",
      "Times the training step of the CNN on one GPU, for all contenders in turns or for one."};
  const auto batch = static_cast<std::size_t>(arguments.number(1, usual_batch));
  const auto steps = static_cast<std::size_t>(arguments.number(2, usual_steps));
  const bench::JsonFile json{arguments.text(3)};
  return bench::main_of([&] { return run_all(arguments.number(0, 15), batch, steps, json.get()); });
}
