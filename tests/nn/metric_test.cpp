#include <dist/nn/metric.hpp>

#include <cstdint>
#include <type_traits>

#include <doctest/doctest.h>
#include <dist/dist.hpp>

namespace nn = dist::nn;

namespace {

/// Counts what it is given.
struct Evens {
  using Tally = nn::Tally<std::int64_t, std::int64_t>;
  std::string_view name = "evens";
  Tally operator()(std::int64_t number) const { return {number % 2 == 0 ? 1 : 0, 1}; }
};
struct NoTally {
  std::string_view name = "none";
};

static_assert(nn::MetricFunction<Evens>);
static_assert(!nn::MetricFunction<NoTally>);

}  // namespace

TEST_CASE("replicas count for themselves, the result is over all of them (spec P15)") {
  for (std::size_t replicas = 1; replicas <= 4; ++replicas) {
    dist::Mirrored<dist::SharedMemoryAllReduce> strategy{replicas};
    nn::Metric evens{strategy, Evens{}};
    static_assert(std::is_same_v<decltype(evens)::Measure, Evens>);
    CHECK(evens.name() == "evens");
    CHECK(evens.result(strategy.scope()) == 0.0);
    for (int step = 0; step < 3; ++step)
      strategy.run([&](auto& replica) {
        const auto id = static_cast<std::int64_t>(replica.replica_id().index());
        for (std::int64_t i = 0; i <= id; ++i) evens.update(replica, i);  // replica r sees 0 … r
      });
    double even = 0;
    double all = 0;
    for (std::size_t replica = 0; replica < replicas; ++replica)
      for (std::size_t i = 0; i <= replica; ++i) ++all, even += i % 2 == 0 ? 1 : 0;
    CHECK(evens.result(strategy.scope()) == even / all);
    strategy.run([&](auto& replica) { CHECK(evens.result(replica) == even / all); });

    evens.reset(strategy.scope());  // spec P18
    CHECK(evens.result(strategy.scope()) == 0.0);
    strategy.run([&](auto& replica) { evens.add(replica, {1, 4}); });
    CHECK(evens.result(strategy.scope()) == 0.25);
  }
}

TEST_CASE("the state of different replicas shares no page") {
  dist::Mirrored<dist::SharedMemoryAllReduce> strategy{2};
  auto total = strategy.variable<std::int64_t, dist::OnRead, dist::Sum>(dist::Shape{}, 0, "total");
  const auto scope = strategy.scope();
  const auto* first = total.component(scope, 0).data();
  const auto* second = total.component(scope, 1).data();
  CHECK((first > second ? first - second : second - first) >= 4096 / 8);
}

TEST_CASE("under Default the same code runs as if there were no strategy") {
  dist::Default strategy;
  nn::Metric evens{strategy, Evens{}};
  strategy.run([&](auto& replica) { evens.update(replica, 2); });
  CHECK(evens.result(strategy.scope()) == 1.0);
}
