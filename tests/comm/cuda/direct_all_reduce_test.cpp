// Replicas on GPUs, several of which may share one, reduce each other's memory: the bits of replicas on the host.
// replicas on GPUs: 1 2 3 4 8
#include <dist/comm/cuda/direct_all_reduce.cuh>

#include <cstddef>
#include <span>
#include <vector>

#include <dist/comm/memory/shared_memory_all_reduce.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/device/cpu.hpp>
#include <dist/strategy/mirrored.hpp>

#include <doctest/doctest.h>
#include <conformance/make_strategy.hpp>

namespace {

struct Number {
  float* to;
  float rank;
  DIST_HD void operator()(std::size_t i) const { to[i] = (rank + 0.1F) * static_cast<float>(i % 31) - 1.0F; }
};
/// Momentum, whose slots belong to the replica that updates their elements.
struct Momentum {
  float* velocity;
  DIST_HD float operator()(std::size_t i, float weight, float gradient) const {
    velocity[i] = 0.5F * velocity[i] + gradient;
    return weight - 0.25F * velocity[i];
  }
};

struct Outcome {
  std::vector<std::vector<float>> weights, greatest, first;
  bool operator==(const Outcome&) const = default;
};

/// Steps that follow each other without a wait of the host, on memory of the devices.
template <class Ops, class Device>
Outcome train(std::size_t replicas, std::size_t count) {
  dist::Mirrored<Ops, Device> strategy{replicas};
  const dist::Shape shape{count};
  auto gradient = strategy.template buffer<float>(shape);
  auto weights = strategy.template buffer<float>(shape);
  auto velocity = strategy.template buffer<float>(shape);
  Outcome outcome;
  const auto read = [&](auto& replica, const auto& values) {
    std::vector<float> seen(values.size());
    using Element = const float;
    replica.queue().copy(typename Device::template Span<Element>{values}, std::span<float>{seen});
    replica.queue().wait();
    return seen;
  };
  const auto all = strategy.run([&](auto& replica) {
    const auto mine = gradient.component(replica);
    const auto rank = static_cast<float>(replica.replica_id().index());
    replica.queue().fill(weights.component(replica), 1.0F);
    for (int step = 0; step < 3; ++step) {
      replica.for_each(count, Number{mine.data(), rank + static_cast<float>(step)});
      replica.reduce_and_apply(dist::mean, mine, weights.component(replica),
                               Momentum{velocity.component(replica).data()});
    }
    const auto trained = read(replica, weights.component(replica));
    replica.all_reduce(dist::max, mine);
    const auto greatest = read(replica, mine);
    replica.for_each(count, Number{mine.data(), rank});
    replica.broadcast(mine, replica.num_replicas_in_sync() - 1);
    return std::vector{trained, greatest, read(replica, mine)};
  });
  for (const auto& of_replica : strategy.local_results(all)) {
    outcome.weights.push_back(of_replica[0]);
    outcome.greatest.push_back(of_replica[1]);
    outcome.first.push_back(of_replica[2]);
  }
  return outcome;
}

}  // namespace

TEST_CASE("collectives of memory of GPUs give the bits of those of the host") {
  const std::size_t replicas = conformance::replicas_of_environment();
  for (const std::size_t count : {5U, 1003U}) {
    CAPTURE(count);
    const Outcome expected = train<dist::SharedMemoryAllReduce, dist::Cpu>(replicas, count);
    const Outcome outcome = train<dist::DirectAllReduce, dist::Cuda>(replicas, count);
    CHECK(outcome == expected);
    for (const auto& weights : outcome.weights) CHECK(weights == outcome.weights[0]);
  }
}
