// A training step of all replicas as one graph: the same bits as without capture, and one launch.
// replicas on GPUs: 1 2 3 4
#include <dist/strategy/step_graph.hpp>

#include <doctest/doctest.h>
#include <conformance/make_strategy.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <dist/comm/cuda/policies.cuh>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/context/per_replica.hpp>
#include <dist/context/subgroup.hpp>
#include <dist/core/config.hpp>
#include <dist/core/tensor.hpp>
#include <dist/device/cuda/device.cuh>
#include <dist/nn/optimizer.hpp>
#include <dist/nn/optimizers/adam.hpp>
#include <dist/nn/optimizers/sgd.hpp>
#include <dist/nn/optimizers/with.hpp>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/strategy/one_device.hpp>
#include <support/gpu_counts.hpp>
#include <support/one_layer.hpp>

namespace nn = dist::nn;
using Mirrored = dist::Mirrored<dist::DirectAllReduce, dist::Cuda>;
using Central = dist::CentralStorage<dist::Cpu, dist::Cuda>;
using dist::NotCapturable;
using support::OneLayer;
using support::Slope;

namespace {

const std::size_t replicas = conformance::replicas_of_environment();
constexpr std::size_t steps = 6;

template <class S>
[[nodiscard]] std::vector<float> numbers_of(S& strategy, OneLayer<S>& net, std::size_t local) {
  dist::Tensor<float> copy{{net.size}};
  const auto queue = strategy.scope().queue(local);
  queue.copy(net.weights.component(strategy.scope(), local), copy.elements());
  queue.wait();
  return {copy.data(), copy.data() + copy.size()};
}

struct Trained {
  std::vector<std::vector<float>> numbers;  // of the weights of each replica, and of every slot
  std::int64_t iterations;
  bool operator==(const Trained&) const = default;
};

/// Runs some steps by `run(step, number)`; between some, the host changes the weights without waiting.
template <class S, class O, class Run>
Trained train(S& strategy, const O& function, Run&& run) {
  OneLayer<S> net{strategy};
  nn::Optimizer optimizer{strategy, net, function};
  const auto step = [&](auto& replica, std::size_t number) {
    const auto slopes = net.slopes.component(replica);
    replica.for_each(slopes.size(), Slope{slopes.data(), number + 2 * replica.replica_id().index()});
    optimizer.apply_gradients(replica);
  };
  strategy.run(step, std::size_t{100});
  for (std::size_t number = 0; number < steps; ++number) {
    if (number == 4) optimizer.set_learning_rate(0.25F);
    run(step, number);
    if (number == 2) net.weights.assign_add(strategy.scope(), 0.5F);
  }
  Trained trained{{}, optimizer.iterations(strategy.scope())};
  for (std::size_t local = 0; local < strategy.num_local_replicas(); ++local)
    trained.numbers.push_back(numbers_of(strategy, net, local));
  for (const auto& slot : optimizer.slots()) {
    const auto whole = slot.whole(strategy.scope());
    trained.numbers.emplace_back(whole.data(), whole.data() + whole.size());
  }
  return trained;
}

/// Checks that steps give the same bits with and without graphs; returns the number of further graphs.
template <class S, class O, class... Arguments>
[[nodiscard]] std::size_t check_graphs(const O& function, const Arguments&... arguments) {
  S strategy{arguments...};
  const Trained eager =
      train(strategy, function, [&](const auto& step, std::size_t number) { strategy.run(step, number); });
  dist::StepGraph graph{strategy};
  const std::size_t before = support::gpu_counts().graph_launches;
  const Trained captured =
      train(strategy, function, [&](const auto& step, std::size_t number) { graph.run(step, number); });
  CHECK(captured == eager);
  if (support::gpus_are_counted) CHECK(support::gpu_counts().graph_launches == before + steps);
  return graph.instantiations();
}

/// Returns the text of the NotCapturable of a replica that ended `run`; empty for any other outcome.
template <class Run>
[[nodiscard]] std::string refusal(Run&& run) {
  try {
    run();
  } catch (const dist::ReplicaError& error) {
    try {
      std::rethrow_exception(error.cause());
    } catch (const NotCapturable& cause) {
      return cause.what();
    }
  } catch (const NotCapturable& error) {
    return error.what();
  }
  return {};
}
[[nodiscard]] bool says(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a step is one graph, including the optimizer's count, with the same bits as without") {
  CHECK(check_graphs<Mirrored>(nn::Adam{}, replicas) == 1);
  CHECK(check_graphs<Central>(nn::Adam{}, replicas) == 1);
  CHECK(check_graphs<dist::OneDevice<dist::Cuda>>(nn::Adam{}) == 1);
}

TEST_CASE("steps with other operations are other graphs") {
  const nn::SGD momentum{.learning_rate = 0.125F, .momentum = 0.5F};
  CHECK(check_graphs<Mirrored>(nn::With{momentum, nn::AccumulateGradients{3}, nn::GlobalClipNorm{2.0F}}, replicas) > 1);
}

TEST_CASE("results of a step, and copies to the host, are available after the step") {
  Mirrored strategy{replicas};
  dist::StepGraph graph{strategy};
  const auto buffer = strategy.buffer<float>({8}, "buffer");
  dist::PerReplica<std::vector<float>> results(replicas, [](std::size_t) { return std::vector<float>(8); });
  const auto step = [&](auto& replica, std::vector<float>& result, float number) {
    const auto mine = buffer.component(replica);
    replica.queue().fill(mine, number + static_cast<float>(replica.local_index()));
    replica.all_reduce(dist::sum, mine);
    replica.queue().copy(mine, std::span{result});
    return replica.local_index();
  };
  strategy.run(step, results, 0.0F);
  for (int number = 1; number < 4; ++number) {
    const auto returned = graph.run(step, results, static_cast<float>(number));
    for (std::size_t local = 0; local < replicas; ++local) {
      CHECK(returned[local] == local);
      strategy.queues()[local].wait();
      const auto expected =
          static_cast<float>(replicas * static_cast<std::size_t>(number) + replicas * (replicas - 1) / 2);
      CHECK(results[local] == std::vector<float>(8, expected));
    }
  }
  CHECK(graph.instantiations() == 1);
}

TEST_CASE("a step that waits for a device, or allocates, is refused and not executed") {
  Mirrored strategy{replicas};
  auto variable = strategy.variable<float>({100}, 1.0F, "variable");
  dist::StepGraph graph{strategy};
  const auto add = [&](auto& replica) {
    const auto mine = variable.component(replica);
    replica.for_each(mine.size(), dist::detail::UpdateElement<float, dist::detail::Uniform<float>, dist::Sum>{
                                      mine.data(), {1.0F}, {}});
  };
  const std::string waited = refusal([&] {
    graph.run([&](auto& replica) {
      add(replica);
      replica.queue().wait();
    });
  });
  CHECK(says(waited, "The host waits for queue "));
  CHECK(says(waited, "its work is captured as a graph"));
  const auto read = [](auto& replica) {
    return replica.queue().transform_reduce(dist::sum, dist::IndexRange{0, 4}, dist::detail::FloatOfIndex{});
  };
  CHECK(says(refusal([&] { graph.run(read); }), "The host waits for queue "));
  const std::string allocated = refusal([&] {
    graph.run([&](auto& replica) {
      add(replica);
      const dist::cuda::DeviceBuffer memory{replica.queue().stream().device(), 8};
    });
  });
  CHECK(says(allocated, "cudaMalloc(&first, bytes)"));
  CHECK(says(allocated, "while work is captured as a graph"));
  CHECK_THROWS_AS(strategy.run([&](auto&) { graph.run(add); }), dist::ReplicaError);
  graph.run(add);
  strategy.run(add);
  const auto values = variable.read(strategy.scope());
  std::size_t wrong = 0;
  for (const float value : values.elements()) wrong += value != 3.0F;
  CHECK(wrong == 0);
}

TEST_CASE("on the host a step is a run") {
  dist::Mirrored<dist::ThreadAllReduce> strategy{2};
  dist::StepGraph graph{strategy};
  const auto ranks = graph.run([](auto& replica) { return replica.all_reduce(dist::sum, replica.local_index()); });
  CHECK(ranks[1] == 1);
  CHECK(graph.instantiations() == 0);
}

namespace {
/// Sets the first number to the second plus one.
struct Advance {
  double* numbers;
  DIST_HD void operator()(std::size_t) const { numbers[0] = numbers[1] + 1; }
};
}  // namespace

TEST_CASE("replicas exchange with their neighbours in a graph") {
  Mirrored strategy{replicas};
  const auto field = strategy.buffer<double>({2});
  dist::StepGraph graph{strategy};
  strategy.run([&](auto& replica) {
    replica.queue().fill(field.component(replica), 100.0 * static_cast<double>(replica.replica_id().index()));
  });
  for (std::size_t number = 0; number < steps; ++number)
    graph.run([&](auto& replica) {
      const std::size_t id = replica.replica_id().index();
      const auto mine = field.component(replica);
      replica.neighbor_exchange({{(id + 1) % replicas, mine.first(1)}},
                                {{(id + replicas - 1) % replicas, mine.subspan(1, 1)}});
      replica.for_each(1, Advance{mine.data()});
    });
  CHECK(graph.instantiations() == 1);
  strategy.run([&](auto& replica) {
    const std::size_t origin = (replica.replica_id().index() + replicas * steps - steps) % replicas;
    std::vector<double> seen(2);
    replica.queue().copy(field.component(replica), std::span<double>{seen});
    replica.queue().wait();
    if (seen[0] != static_cast<double>(100 * origin + steps)) throw std::logic_error("a number of another replica");
  });
}
