// Strategies on a device whose memory the host cannot access, and which works only during waits: code that passes uses
// queues and spans only.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/indexed_slices.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/tensor.hpp>
#include <dist/strategy/mirrored.hpp>
#include <dist/strategy/one_device.hpp>
#include <dist/variable/generator.hpp>

#include <doctest/doctest.h>
#include <conformance/make_strategy.hpp>
#include <support/guarded_all_reduce.hpp>
#include <support/guarded_device.hpp>

using testing::GuardedAllReduce;
using testing::GuardedDevice;
using One = dist::OneDevice<GuardedDevice>;
using Guarded = dist::Mirrored<GuardedAllReduce, GuardedDevice>;
template <std::size_t replicas>
using Make = conformance::Make<Guarded, replicas>;

namespace {

struct TakeAway {
  template <class T>
  T operator()(std::size_t, T weight, T gradient) const {
    return weight - gradient;
  }
};

/// Returns the value of replica r: r + 1.
template <class Replica>
float number_of(const Replica& replica) {
  return static_cast<float>(replica.replica_id().index() + 1);
}

}  // namespace

TEST_CASE_TEMPLATE("replicas on a device", Maker, conformance::Make<One>, Make<1>, Make<2>, Make<3>, Make<4>) {
  const auto made = Maker::make();
  auto& strategy = *made;
  using S = std::remove_reference_t<decltype(strategy)>;
  const auto replicas = static_cast<float>(strategy.num_replicas_in_sync());
  const float total = replicas * (replicas + 1) / 2;
  const dist::Shape shape{10, 20};
  dist::Tensor<float> counted{shape};
  for (std::size_t i = 0; i < counted.size(); ++i) counted[i] = static_cast<float>(i);

  SUBCASE("enqueue work in their own queues, and reduce") {
    auto buffer = strategy.template buffer<float>(shape);
    const auto sums = strategy.run([&](auto& replica) {
      const auto mine = buffer.component(replica);
      static_assert(std::is_same_v<decltype(mine), const GuardedDevice::Span<float>>);
      replica.queue().fill(mine, number_of(replica));
      replica.for_each(mine.size(), [data = mine.data()](std::size_t i) { data[i] += static_cast<float>(i); });
      return replica.transform_reduce(dist::sum, {0, 3}, [data = mine.data()](std::size_t i) { return data[i]; });
    });
    std::size_t r = 0;
    for (const float sum : strategy.local_results(sums)) CHECK(sum == static_cast<float>(3 * ++r + 3));
  }
  SUBCASE("reduce, broadcast and apply in device memory, and reduce in host memory") {
    auto gradient = strategy.template buffer<float>(shape);
    auto weights = strategy.template variable<float>(shape, counted);
    strategy.run([&](auto& replica) {
      const auto mine = gradient.component(replica);
      replica.queue().fill(mine, number_of(replica));
      replica.reduce_and_apply(dist::mean, mine, weights.component(replica), TakeAway{});
      replica.all_reduce(dist::sum, mine);
      std::vector<float> seen(mine.size());
      replica.queue().copy(mine, std::span<float>{seen});
      replica.queue().wait();
      CHECK(seen == std::vector<float>(seen.size(), total));
      replica.queue().fill(mine, number_of(replica));
      replica.broadcast(mine, replica.num_replicas_in_sync() - 1);
      replica.queue().copy(mine, std::span<float>{seen});
      replica.queue().wait();
      CHECK(seen == std::vector<float>(seen.size(), replicas));
      CHECK(replica.all_reduce(dist::sum, number_of(replica)) == total);
    });
    const dist::Tensor<float> after = weights.read(strategy.scope());
    for (std::size_t i = 0; i < after.size(); ++i) CHECK(after[i] == counted[i] - total / replicas);
    if constexpr (std::is_same_v<S, Guarded>)
      CHECK_THROWS_AS(strategy.run([&](auto& replica) { replica.broadcast(gradient.component(replica), 9); }),
                      dist::ReplicaError);
  }
  SUBCASE("reduce and apply in two halves, with the shares of host memory") {
    auto gradient = strategy.template buffer<float>(shape);
    auto sums = strategy.template buffer<float>(shape);
    auto weights = strategy.template variable<float>(shape, counted);
    strategy.run([&](auto& replica) {
      const auto mine = gradient.component(replica), kept = sums.component(replica);
      replica.queue().fill(mine, number_of(replica));
      const dist::IndexRange share = replica.reduce_scatter(dist::mean, mine, kept);
      CHECK(share == dist::shard_of(200, replica.replica_id().index(), replica.num_replicas_in_sync(), 16));
      replica.update_shards(kept, weights.component(replica), TakeAway{});
      std::vector<float> seen(kept.size());
      replica.queue().copy(kept, std::span<float>{seen});
      replica.queue().wait();
      for (std::size_t i = 0; i < seen.size(); ++i)
        CHECK(seen[i] == (share.begin <= i && i < share.end ? total / replicas : 0));
      CHECK_THROWS_AS(static_cast<void>(replica.reduce_scatter(dist::sum, mine, kept.first(3))), dist::ShapeMismatch);
    });
    const dist::Tensor<float> after = weights.read(strategy.scope());
    for (std::size_t i = 0; i < after.size(); ++i) CHECK(after[i] == counted[i] - total / replicas);
  }
  SUBCASE("have variables, which accept numbers, host tensors and device views") {
    auto sum = strategy.template variable<float, dist::OnWrite, dist::Sum>(shape, counted);
    auto mean = strategy.template variable<float, dist::OnRead, dist::Mean>(shape);
    auto first = strategy.template variable<float, dist::OnWrite, dist::OnlyFirstReplica>(
        shape, [&](dist::TensorView<float> all) {
          for (std::size_t i = 0; i < all.size(); ++i) all[i] = 4;
        });
    CHECK(first.read(strategy.scope())[199] == 4);
    strategy.run([&](auto& replica) {
      CHECK(first.synchronized_read(replica).size() == 200);
      sum.assign(replica, 1.0F);
      sum.assign_add(replica, counted);
      sum.assign_sub(replica, sum.read(replica));
      mean.assign(replica, number_of(replica));
      first.assign(replica, counted);
      first.assign_add(replica, number_of(replica));
      CHECK(mean.synchronized_read(replica)[7] == total / replicas);
    });
    const auto scope = strategy.scope();
    const auto sums = sum.read(scope);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const float before = replicas + replicas * counted[i];
      CHECK(sums[i] == before - replicas * before);
    }
    CHECK(mean.read(scope)[9] == total / replicas);
    CHECK(first.read(scope)[9] == 10);
    mean.assign(scope, counted);
    mean.assign_add(scope, 1.0F);
    CHECK(mean.read(scope)[9] == 10);
    CHECK(mean.whole(scope)[9] == 10);
    mean.restore(scope, counted);
    CHECK(mean.whole(scope) == counted);
    CHECK(strategy.reduce(dist::max, sum)[0] == sums[0]);
    strategy.update(first, [&](auto& context) { first.assign(context, 3.0F); });
    CHECK(first.read(scope)[3] == 3);
  }
  SUBCASE("change rows by slices in host memory") {
    auto table = strategy.template variable<float, dist::OnWrite, dist::Sum>(shape);
    const dist::IndexedSlices<float> rows{{2, 5}, dist::Tensor<float>{{2, 20}, std::vector<float>(40, 1.0F)}, shape};
    table.scatter_add(strategy.scope(), rows);
    strategy.run([&](auto& replica) { table.scatter_add(replica, rows); });
    const auto seen = table.read(strategy.scope());
    CHECK(seen(2, 3) == 1 + replicas);
    CHECK(seen(5, 19) == 1 + replicas);
    CHECK(seen(3, 0) == 0);
  }
  SUBCASE("keep counters in host memory") {
    auto steps = strategy.template host_variable<std::int64_t, dist::OnWrite, dist::OnlyFirstReplica>({}, 5);
    auto calls = strategy.template host_buffer<std::int64_t>({2});
    CHECK(strategy.owns(steps));
    CHECK(strategy.owns(calls));
    strategy.run([&](auto& replica) {
      const std::span<std::int64_t> mine = calls.component(replica);
      mine[1] += 2;
      steps.assign_add(replica, 1);
      CHECK(steps.read(replica)[0] == 6);
    });
    CHECK(steps.value(strategy.scope()) == 6);
    CHECK(calls.component(strategy.scope(), 0)[1] == 2);
    S other;
    CHECK(!other.owns(steps));
    CHECK_THROWS_AS(static_cast<void>(steps.value(other.scope())), dist::WrongStrategy);
  }
  SUBCASE("draw different numbers") {
    dist::Generator random{strategy, 42};
    const auto drawn = strategy.run([&](auto& replica) { return random.uniform(replica); });
    for (const float number : strategy.local_results(drawn)) CHECK((number >= 0 && number < 1));
  }
}
