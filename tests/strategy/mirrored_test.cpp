#include <dist/strategy/mirrored.hpp>

#include <dist/strategy/default.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <set>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <dist/comm/memory/reduction_to_one_device.hpp>

#include <doctest/doctest.h>
#include <conformance/strategy.hpp>

using conformance::Make;
using Shared = dist::Mirrored<dist::ThreadAllReduce>;
using ToOne = dist::Mirrored<dist::ReductionToOneDevice>;

TEST_CASE_TEMPLATE_INSTANTIATE(strategies, Make<Shared, 1>, Make<Shared, 2>, Make<Shared, 3>, Make<Shared, 4>,
                               Make<Shared, 8>, Make<ToOne, 2>, Make<ToOne, 3>);

TEST_CASE("by default there is one replica per device (spec A01)") {
  CHECK(Shared{}.num_replicas_in_sync() == dist::Cpu::count());
  CHECK_THROWS_AS(Shared{0}, dist::InvalidArgument);
}

TEST_CASE("a strategy describes itself") {
  const std::string first = dist::Cpu::device_name(dist::Cpu::placement(1)[0]);
  const std::string line = Shared{2}.describe();
  CAPTURE(line);
  CHECK(line.find("Mirrored<ThreadAllReduce, Cpu>: 2 replicas on " + first) == 0);
  CHECK(ToOne{1}.describe() == "Mirrored<ReductionToOneDevice, Cpu>: 1 replica on " + first);
}

TEST_CASE("a strategy describes itself equally in every replica, despite bound threads") {
  Shared strategy{2};
  const auto lines = strategy.run([](auto& replica) { return replica.strategy().describe(); });
  CHECK(lines[0] == strategy.describe());
  CHECK(lines[1] == strategy.describe());
}

TEST_CASE("replicas run in separate threads, the first in the caller's, the same in every run") {
  Shared strategy{3};
  const auto threads = [&] {
    const auto ids = strategy.run([](auto&) { return std::this_thread::get_id(); });
    return std::vector<std::thread::id>(ids.begin(), ids.end());
  };
  const std::vector<std::thread::id> first = threads();
  CHECK(first[0] == std::this_thread::get_id());
  CHECK(std::set<std::thread::id>(first.begin(), first.end()).size() == 3);
  CHECK(threads() == first);
}

TEST_CASE("replicas run concurrently: each waits for all others without a collective") {
  Shared strategy{4};
  std::atomic<int> arrived = 0;
  strategy.run([&](auto&) {
    ++arrived;
    while (arrived < 4) std::this_thread::yield();
  });
  CHECK(arrived == 4);
}

TEST_CASE("with one replica run still returns a PerReplica, and an exception is a ReplicaError") {
  Shared strategy{1};
  const auto result = strategy.run([](auto&) { return 5; });
  static_assert(std::is_same_v<decltype(result), const dist::PerReplica<int>>);
  CHECK(result[0] == 5);
  CHECK_THROWS_AS(strategy.run([](auto&) { throw 7; }), dist::ReplicaError);
}

TEST_CASE("references that replica functions return become values") {
  Shared strategy{2};
  int number = 4;
  const auto results = strategy.run([&](auto&) -> int& { return number; });
  number = 5;
  static_assert(std::is_same_v<decltype(results), const dist::PerReplica<int>>);
  CHECK(results[1] == 4);
}

TEST_CASE("run inside a replica function is refused, and the strategy remains usable") {
  Shared strategy{2};
  std::string message;
  try {
    strategy.run([&](auto& replica) {
      if (replica.local_index() == 0) strategy.run([](auto&) {});
    });
  } catch (const dist::ReplicaError& error) {
    message = error.what();
    CHECK_THROWS_AS(std::rethrow_exception(error.cause()), dist::WrongStrategy);
  }
  CAPTURE(message);
  CHECK(message.find("run was called during a run of the same strategy") != std::string::npos);
  CHECK(strategy.reduce(dist::sum, strategy.run([](auto& r) { return r.all_reduce(dist::sum, 1); })) == 4);
}

TEST_CASE("ten thousand short runs return all results") {
  Shared strategy{2};
  std::size_t calls[2] = {};
  for (int i = 0; i < 10000; ++i) strategy.run([&](auto& replica) { ++calls[replica.local_index()]; });
  CHECK(calls[0] == 10000);
  CHECK(calls[1] == 10000);
}

TEST_CASE("two strategies can coexist, one inside a replica function of the other") {
  Shared outer{2};
  const auto sums = outer.run([](auto& replica) {
    ToOne inner{2};
    const auto results = inner.run([&](auto& r) {
      return r.all_reduce(dist::sum, static_cast<int>(10 * replica.local_index() + r.local_index()));
    });
    return results[1];
  });
  CHECK(sums[0] == 1);
  CHECK(sums[1] == 21);
}

TEST_CASE("per-replica values of another strategy are refused (spec B14)") {
  Shared two{2};
  dist::Default one;
  const auto three = Shared{3}.run([](auto&) { return 1; });
  CHECK_THROWS_AS(two.run([](auto&, int) {}, three), dist::WrongStrategy);
  CHECK_THROWS_AS(one.run([](auto&, int) {}, three), dist::WrongStrategy);
}

TEST_CASE("a caught mismatch does not affect the next run") {
  Shared two{2};
  two.run([](auto& replica) {
    if (replica.replica_id().index() == 0)
      CHECK_THROWS_AS(static_cast<void>(replica.all_reduce(dist::sum, 1)), dist::CollectiveMismatch);
  });
  const auto sums =
      two.run([](auto& replica) { return replica.all_reduce(dist::sum, replica.replica_id().index() + 1); });
  CHECK(sums[0] == 3);
  CHECK(sums[1] == 3);
}
