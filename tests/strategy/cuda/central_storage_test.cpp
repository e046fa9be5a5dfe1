// One copy of every variable in host memory, and replicas on GPUs.
// replicas on GPUs: 1 2 3 4
#include <dist/comm/cuda/policies.cuh>
#include <dist/device/cuda/device.cuh>
#include <dist/strategy/central_storage.hpp>

#include <doctest/doctest.h>
#include <conformance/make_strategy.hpp>
#include <support/apply.hpp>
#include <support/gpu_counts.hpp>

#include <cstddef>
#include <span>

using Central = dist::CentralStorage<dist::Cpu, dist::Cuda>;
using dist::CentralStore;

namespace {

const std::size_t replicas = conformance::replicas_of_environment();

using Apply = support::Apply<double>;

struct Descend {
  DIST_HD double operator()(std::size_t i, double weight, double reduced) const {
    return weight - reduced * static_cast<double>(i);
  }
};

}  // namespace

TEST_CASE("variables are in host memory once, buffers on each replica's GPU") {
  Central strategy{replicas};
  const auto before = support::live_on_gpus();
  auto weights = strategy.variable<float>({1000}, 0.0F, "weights");
  const auto gradients = strategy.buffer<float>({1000}, "gradients");
  if (support::gpus_are_counted) {
    CHECK(support::live_on_gpus().pinned_allocations == before.pinned_allocations + 1);
    CHECK(support::live_on_gpus().device_allocations == before.device_allocations + replicas);
  }
  const auto places = strategy.run([&](auto& replica) { return weights.component(replica).data(); });
  for (const float* const place : places) CHECK(place == weights.component(strategy.scope(), 0).data());
  CHECK(weights.copies() == 1);
  CHECK(strategy.describe().find("CentralStorage<Cpu, Cuda>: ") == 0);
}

TEST_CASE("reduce_and_apply changes each element of the one copy once") {
  Central strategy{replicas};
  auto weights = strategy.variable<double>({5000}, 1.0, "weights");
  const auto gradients = strategy.buffer<double>({5000}, "gradients");
  for (int step = 0; step < 2; ++step)
    strategy.run([&](auto& replica) {
      replica.queue().fill(gradients.component(replica), static_cast<double>(replica.local_index() + 1));
      replica.reduce_and_apply(dist::sum, gradients.component(replica), weights.component(replica), Descend{});
    });
  const double sum = static_cast<double>(replicas * (replicas + 1)) / 2;
  const auto values = weights.read(strategy.scope());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) wrong += values[i] != 1.0 - 2.0 * sum * static_cast<double>(i);
  CHECK(wrong == 0);
}

TEST_CASE("replicas, merge calls and outside work see earlier writes to the copy") {
  Central strategy{replicas};
  auto copy = strategy.variable<double, dist::OnWrite, dist::Mean>({300}, 1.0, "copy");
  const auto of_each = strategy.buffer<double>({300}, "of each");
  for (int round = 0; round < 3; ++round) {
    copy.assign_add(strategy.scope(), 1.0);
    strategy.run([&](auto& replica) {
      const auto mine = copy.component(replica);
      CentralStore::once(replica, [&] { replica.for_each({0, 300}, Apply{mine.data(), 2.0, 0.0}); });
      replica.queue().copy(mine, of_each.component(replica));
      CentralStore::share_out(replica, 300, [&](dist::IndexRange part) {
        replica.for_each(part, Apply{mine.data(), 1.0, 3.0});
      });
      replica.merge_call([&](auto& scope) { copy.assign_sub(scope, 1.0); });
      CentralStore::from_first(replica, mine, [&](auto all_values) {
        replica.for_each({0, 300}, Apply{all_values.data(), 3.0, 0.0});
      });
      copy.assign_add(replica, static_cast<double>(replica.local_index()));  // the mean of 0, 1, …
      CentralStore::update_local_then_average(replica, mine, of_each.component(replica), [&](auto own) {
        replica.for_each({0, 300}, Apply{own.data(), 1.0, static_cast<double>(2 * replica.local_index())});
        return 0;
      });
    });
    const double mean = static_cast<double>(replicas - 1) / 2;
    const auto values = copy.read(strategy.scope());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < 300; ++i) wrong += values[i] != 18 + 3 * mean;
    CHECK(wrong == 0);
    copy.assign(strategy.scope(), 1.0);
  }
}

TEST_CASE("each replica reads the copy between two writes of others") {
  Central strategy{replicas};
  auto copy = strategy.variable<double>({300}, 1.0, "copy");
  const auto seen = strategy.buffer<double>({300}, "seen");
  copy.assign(strategy.scope(), 5.0);
  strategy.run([&](auto& replica) {
    const auto mine = copy.component(replica);
    CentralStore::once(replica, [&] { replica.for_each({0, 300}, Apply{mine.data(), 2.0, 1.0}); });
    replica.queue().copy(mine, seen.component(replica));
    CentralStore::once(replica, [&] { replica.for_each({0, 300}, Apply{mine.data(), 0.0, 0.0}); });
  });
  copy.assign_add(strategy.scope(), 4.0);
  std::size_t wrong = 0;
  for (std::size_t replica = 0; replica < replicas; ++replica) {
    dist::Tensor<double> values{dist::Shape{300}};
    const auto queue = strategy.queues()[replica];
    queue.copy(seen.component(strategy.scope(), replica), values.elements());
    queue.wait();
    for (const double value : values.elements()) wrong += value != 11.0;
  }
  const auto last = copy.read(strategy.scope());
  for (const double value : last.elements()) wrong += value != 4.0;
  CHECK(wrong == 0);
}
