// Replicas on GPUs, some with several replicas, with a host thread each: variables, steps, and reductions of host
// numbers are bitwise equal to the host's.
// replicas on GPUs: 1 2 3 4 8
#include <dist/device/cuda/device.cuh>

#include <doctest/doctest.h>
#include <conformance/make_strategy.hpp>

#include <cstddef>
#include <cstring>
#include <vector>

#include <dist/comm/cuda/policies.cuh>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/core/tensor.hpp>
#include <dist/device/cpu.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/variable/policies.hpp>

namespace {

constexpr std::size_t count = 1003;

struct Descend {
  float* weight;
  float slope;
  DIST_HD void operator()(std::size_t i) const { weight[i] -= slope * static_cast<float>(i % 17); }
};
struct ElementAt {
  const float* weight;
  DIST_HD float operator()(std::size_t i) const { return weight[i]; }
};

struct Trained {
  std::vector<float> weights, sums;
  float largest;
};

/// Every replica takes its own steps, and all agree on the mean of their weights.
template <class Ops, class Device>
Trained train(std::size_t replicas) {
  dist::Mirrored<Ops, Device> strategy{replicas};
  auto weights = strategy.template variable<float, dist::OnWrite, dist::Mean>({count}, 1.0F, "weights");
  auto own = strategy.template variable<float, dist::OnRead, dist::Sum>({count}, 0.0F, "own");
  std::vector<float> largest(replicas);
  for (int step = 0; step < 3; ++step)
    strategy.run([&](auto& replica) {
      const auto mine = own.component(replica);
      replica.for_each(count, Descend{mine.data(), 0.25F * static_cast<float>(replica.replica_id().index() + 1)});
      dist::Tensor<float> change{{count}};
      const auto at = weights.component(replica);
      const float greatest = replica.transform_reduce(dist::max, {0, count}, ElementAt{at.data()});
      for (std::size_t i = 0; i < count; ++i)
        change[i] = greatest - static_cast<float>(i * (replica.replica_id().index() + 1));
      weights.assign_add(replica, change);
      largest[replica.local_index()] = replica.all_reduce(dist::max, greatest);
    });
  const auto whole = weights.whole(strategy.scope());
  const auto sums = own.read(strategy.scope());
  for (const float each : largest) CHECK(each == largest[0]);
  return {{whole.data(), whole.data() + count}, {sums.data(), sums.data() + count}, largest[0]};
}

template <class Host, class Gpus>
struct Pair {
  using OnHost = Host;
  using OnGpus = Gpus;
};

}  // namespace

TEST_CASE_TEMPLATE("replicas on GPUs are bitwise equal to replicas on the host", Policies,
                   Pair<dist::ThreadAllReduce, dist::DirectAllReduce>,
                   Pair<dist::ReductionToOneDevice, dist::ReductionToOneDevice>,
                   Pair<dist::HierarchicalCopyAllReduce, dist::HierarchicalCopyAllReduce>) {
  const std::size_t replicas = conformance::replicas_of_environment();
  const Trained expected = train<typename Policies::OnHost, dist::Cpu>(replicas);
  const Trained trained = train<typename Policies::OnGpus, dist::Cuda>(replicas);
  CHECK(std::memcmp(trained.weights.data(), expected.weights.data(), count * sizeof(float)) == 0);
  CHECK(std::memcmp(trained.sums.data(), expected.sums.data(), count * sizeof(float)) == 0);
  CHECK(trained.largest == expected.largest);
}
