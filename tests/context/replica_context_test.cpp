#include <dist/context/replica_context.hpp>

#include <doctest/doctest.h>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>
#include "support/unshared.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

using dist::IndexRange;
using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;

namespace {

constexpr std::array<std::size_t, 4> replica_counts{1, 2, 3, 4};

}  // namespace

TEST_CASE("InReplica holds only for contexts of replica functions (spec B04, E02)") {
  static_assert(dist::InReplica<Mirrored::Context> && dist::InReplica<dist::Default::Context>);
  static_assert(dist::InReplica<const Mirrored::Context&>);
  static_assert(!dist::InReplica<dist::CrossReplicaContext<Mirrored>>);
  static_assert(!dist::InReplica<Mirrored> && !dist::InReplica<int> && !dist::InReplica<Mirrored::Context*>);
  Mirrored strategy(2);
  strategy.run([](auto& context) { static_assert(dist::InReplica<decltype(context)>); });
  CHECK(std::is_same_v<Mirrored::Context::Strategy, Mirrored>);
}

TEST_CASE("ReplicasShareMemory holds for threads of one process, and for one replica") {
  static_assert(dist::ReplicasShareMemory<Mirrored> && dist::ReplicasShareMemory<Mirrored::Context&>);
  static_assert(dist::ReplicasShareMemory<dist::Default> && dist::ReplicasShareMemory<dist::Default::Context>);
  static_assert(!dist::ReplicasShareMemory<dist::Mirrored<testing::Unshared>>);
}

TEST_CASE("the queue of a processor takes no space in a replica's context") {
  struct Without {
    void* strategy;
    dist::SelfCollectives collectives;
  };
  struct WithGroup {
    void* strategy;
    Mirrored::Collectives collectives;
  };
  static_assert(sizeof(dist::Default::Context) == sizeof(Without));
  static_assert(sizeof(Mirrored::Context) == sizeof(WithGroup));
  Mirrored strategy(2);
  const auto sums = strategy.run([](auto& replica) {
    static_assert(std::is_same_v<decltype(replica.queue()), const dist::Cpu::Queue&>);
    return replica.queue().transform_reduce(dist::sum, {0, 10}, [](std::size_t i) { return static_cast<int>(i); });
  });
  CHECK(sums[1] == 45);
}

TEST_CASE("replicas are numbered from zero, and have their total number (spec E01)") {
  for (const std::size_t replicas : replica_counts) {
    Mirrored strategy(replicas);
    const auto ids = strategy.run([](auto& context) { return context.replica_id(); });
    const auto local = strategy.run([](auto& context) { return context.local_index(); });
    const auto sizes = strategy.run([](auto& context) { return context.num_replicas_in_sync(); });
    const auto strategies = strategy.run([](auto& context) { return &context.strategy(); });
    const auto ranks = strategy.run([](auto& context) { return context.collectives().communicator().rank(); });
    REQUIRE(ids.size() == replicas);
    for (std::size_t replica = 0; replica < replicas; ++replica) {
      CHECK(ids[replica] == dist::ReplicaId{replica});
      CHECK(local[replica] == replica);
      CHECK(sizes[replica] == replicas);
      CHECK(strategies[replica] == &strategy);
      CHECK(ranks[replica] == replica);
    }
  }
}

TEST_CASE("a replica's shard is its part of the whole") {
  for (const std::size_t replicas : replica_counts) {
    Mirrored strategy(replicas);
    for (const std::size_t count : {0U, 1U, 10U, 101U}) {
      const auto shards = strategy.run([&](auto& context) { return context.shard(count); });
      std::size_t reached = 0;
      for (const IndexRange shard : shards) {
        CHECK(shard.begin == reached);
        CHECK(shard.size() >= count / replicas);
        CHECK(shard.size() <= count / replicas + 1);
        reached = shard.end;
      }
      CHECK(reached == count);
    }
  }
}

TEST_CASE("after a barrier every replica sees all earlier writes") {
  for (const std::size_t replicas : replica_counts) {
    Mirrored strategy(replicas);
    std::vector<std::size_t> written(replicas, 0);
    std::vector<std::size_t> wrong(replicas, 0);
    strategy.run([&](auto& context) {
      const std::size_t me = context.local_index();
      for (std::size_t round = 1; round <= 100; ++round) {
        written[me] = round;
        context.barrier();
        for (const std::size_t each : written) wrong[me] += static_cast<std::size_t>(each != round);
        context.barrier();
      }
    });
    for (const std::size_t count : wrong) CHECK(count == 0);
  }
}

TEST_CASE("all_reduce of a number returns its reduction to every replica (spec E03)") {
  for (const std::size_t replicas : replica_counts) {
    Mirrored strategy(replicas);
    const int n = static_cast<int>(replicas);
    const auto mine = [](auto& context) { return static_cast<int>(context.local_index()) + 1; };
    const auto sums = strategy.run([&](auto& context) { return context.all_reduce(dist::sum, mine(context)); });
    const auto products = strategy.run([&](auto& context) { return context.all_reduce(dist::prod, mine(context)); });
    const auto least = strategy.run([&](auto& context) { return context.all_reduce(dist::min, mine(context)); });
    const auto most = strategy.run([&](auto& context) { return context.all_reduce(dist::max, mine(context)); });
    const auto means =
        strategy.run([&](auto& context) { return context.all_reduce(dist::mean, static_cast<double>(mine(context))); });
    int factorial = 1;
    for (int i = 2; i <= n; ++i) factorial *= i;
    for (std::size_t replica = 0; replica < replicas; ++replica) {
      CHECK(sums[replica] == n * (n + 1) / 2);
      CHECK(products[replica] == factorial);
      CHECK(least[replica] == 1);
      CHECK(most[replica] == n);
      CHECK(means[replica] == (n + 1) / 2.0);
    }
  }
}

TEST_CASE("all_reduce of a span works in place, element by element") {
  for (const std::size_t replicas : replica_counts)
    for (const std::size_t count : {0U, 1U, 16U, 1000U}) {
      Mirrored strategy(replicas);
      std::vector<std::vector<float>> values(replicas, std::vector<float>(count));
      strategy.run([&](auto& context) {
        std::vector<float>& mine = values[context.local_index()];
        for (std::size_t i = 0; i < count; ++i) mine[i] = static_cast<float>(i * (context.local_index() + 1));
        context.all_reduce(dist::sum, std::span<float>(mine));
      });
      std::size_t wrong = 0;
      for (const std::vector<float>& each : values)
        for (std::size_t i = 0; i < count; ++i)
          wrong += static_cast<std::size_t>(each[i] != static_cast<float>(i * replicas * (replicas + 1) / 2));
      CHECK(wrong == 0);
    }
}

TEST_CASE("different counts on different replicas are a CollectiveMismatch (spec E12)") {
  Mirrored strategy(2);
  bool surfaced = false;
  try {
    strategy.run([](auto& context) {
      std::vector<float> values(context.local_index() == 0 ? 100 : 101);
      context.all_reduce(dist::sum, std::span<float>(values));
    });
  } catch (const dist::ReplicaError& error) {
    surfaced = true;
    CHECK_THROWS_AS(std::rethrow_exception(error.cause()), dist::CollectiveMismatch);
  }
  CHECK(surfaced);
  CHECK(strategy.run([](auto& context) { return context.all_reduce(dist::sum, 1); })[1] == 2);
}

TEST_CASE("reduce_and_apply applies the same update of the reduced gradient to every mirror") {
  for (const std::size_t replicas : replica_counts)
    for (const std::size_t count : {1U, 100U, 1000U}) {
      Mirrored strategy(replicas);
      std::vector<std::vector<float>> gradients(replicas, std::vector<float>(count));
      std::vector<std::vector<float>> mirrors(replicas, std::vector<float>(count, 1000.0F));
      strategy.run([&](auto& context) {
        const std::size_t me = context.local_index();
        for (std::size_t i = 0; i < count; ++i) gradients[me][i] = static_cast<float>(me + 1);
        context.reduce_and_apply(
            dist::sum, std::span<float>(gradients[me]), std::span<float>(mirrors[me]),
            [](std::size_t i, float weight, float reduced) { return weight + reduced * static_cast<float>(i); });
      });
      const std::size_t total = replicas * (replicas + 1) / 2;
      std::size_t wrong = 0;
      for (const std::vector<float>& mirror : mirrors)
        for (std::size_t i = 0; i < count; ++i)
          wrong += static_cast<std::size_t>(mirror[i] != static_cast<float>(1000 + total * i));
      CHECK(wrong == 0);
    }
}

TEST_CASE("the halves of reduce_and_apply divide the elements equally, and do not copy one replica's operands") {
  for (const std::size_t replicas : replica_counts)
    for (const std::size_t count : {1U, 100U, 1000U}) {
      Mirrored strategy(replicas);
      const auto wrong = strategy.run([&](auto& context) {
        const auto me = static_cast<float>(context.local_index() + 1);
        const std::vector<float> values(count, me);
        std::vector<float> sums(count), mirror(count, 5.0F);
        std::size_t mistakes = 0;
        context.reduce_scatter(dist::sum, std::span(values), [&](std::size_t first, std::span<const float> reduced) {
          if (replicas == 1) mistakes += static_cast<std::size_t>(reduced.data() != values.data() + first);
          std::copy(reduced.begin(), reduced.end(), sums.data() + first);
        });
        context.update_shards(std::span(sums), std::span(mirror), [](std::size_t i, float weight, float reduced) {
          return weight + reduced * static_cast<float>(i);
        });
        const auto total = static_cast<float>(replicas * (replicas + 1) / 2);
        for (std::size_t i = 0; i < count; ++i)
          mistakes += static_cast<std::size_t>(mirror[i] != 5 + total * static_cast<float>(i) || values[i] != me);
        return mistakes;
      });
      for (const std::size_t mistakes : wrong) CHECK(mistakes == 0);
    }
}

TEST_CASE("for_each and transform_reduce run on the replica's device, and shards cover all elements") {
  for (const std::size_t replicas : replica_counts) {
    Mirrored strategy(replicas);
    constexpr std::size_t count = 1001;
    std::vector<int> visits(count, 0);
    const auto totals = strategy.run([&](auto& context) {
      const IndexRange mine = context.shard(count);
      context.for_each(mine, [&](std::size_t i) { ++visits[i]; });
      return context.all_reduce(dist::sum, context.transform_reduce(dist::sum, mine, [](std::size_t i) { return i; }));
    });
    std::size_t wrong = 0;
    for (const int each : visits) wrong += static_cast<std::size_t>(each != 1);
    CHECK(wrong == 0);
    for (const std::size_t total : totals) CHECK(total == 500'500);
    const auto counted = strategy.run([](auto& context) {
      std::array<int, 20> own{};
      context.for_each(20, [&](std::size_t i) { own[i] = static_cast<int>(i); });
      return context.transform_reduce(dist::max, {0, 20}, [&](std::size_t i) { return own[i]; });
    });
    for (const int most : counted) CHECK(most == 19);
  }
}

TEST_CASE("with one replica the size is a constant and collectives are identities (spec H03)") {
  dist::Default strategy;
  const int result = strategy.run([&](auto& context) {
    static_assert(decltype(context.collectives().communicator())::size() == 1);
    CHECK(&context.strategy() == &strategy);
    CHECK(context.replica_id() == dist::ReplicaId{0});
    CHECK(context.local_index() == 0);
    CHECK(context.num_replicas_in_sync() == 1);
    CHECK(context.shard(17) == IndexRange{0, 17});
    context.barrier();
    CHECK(context.all_reduce(dist::sum, 5) == 5);
    CHECK(context.all_reduce(dist::mean, 2.5) == 2.5);
    std::array<float, 3> values{1, 2, 3};
    context.all_reduce(dist::prod, std::span<float>(values));
    CHECK(values == std::array<float, 3>{1, 2, 3});
    std::array<float, 3> mirror{10, 10, 10};
    context.reduce_and_apply(
        dist::sum, std::span<float>(values), std::span<float>(mirror),
        [](std::size_t i, float weight, float reduced) { return weight - reduced * static_cast<float>(i + 1); });
    CHECK(mirror == std::array<float, 3>{9, 6, 1});
    int calls = 0;
    context.for_each(IndexRange{2, 5}, [&](std::size_t) { ++calls; });
    CHECK(calls == 3);
    return context.transform_reduce(dist::prod, {1, 6}, [](std::size_t i) { return static_cast<int>(i); });
  });
  CHECK(result == 120);
}

TEST_CASE("a gradient with another length than its target is refused, without any change") {
  const auto check = [](auto& strategy) {
    const auto refused = strategy.run([](auto& replica) {
      std::array<float, 3> gradient{1, 1, 1};
      std::array<float, 2> mirror{5, 6};
      const auto zero = [](std::size_t, float, float) { return 0.0f; };
      const auto message_of = [](const auto& call) -> std::string {
        try {
          call();
        } catch (const dist::ShapeMismatch& error) {
          return error.what();
        }
        return {};
      };
      const auto expected = [&](std::string_view operation) {
        return dist::concat("The gradient of replica ", replica.replica_id().index(),
                            " does not fit the elements that it changes (3 elements for 2). Give ", operation,
                            " one gradient element for each element to change.");
      };
      return message_of([&] {
               replica.reduce_and_apply(dist::sum, std::span<float>{gradient}, std::span<float>{mirror}, zero);
             }) == expected("reduce_and_apply") &&
             message_of([&] { replica.update_shards(std::span<float>{gradient}, std::span<float>{mirror}, zero); }) ==
                 expected("update_shards") &&
             mirror == std::array<float, 2>{5, 6};
    });
    for (const bool each : strategy.local_results(refused)) CHECK(each);
  };
  dist::Default one;
  check(one);
  Mirrored two{2};
  check(two);
}

TEST_CASE("every collective has the timeout of its call's options (spec H13)") {
  Mirrored strategy(2);
  auto variable = strategy.variable<float, dist::OnRead, dist::Sum>({2});
  const dist::CommunicationOptions soon{.timeout = std::chrono::milliseconds{5}};
  const auto nothing = [](auto&&...) {};
  const auto keep = [](std::size_t, float weight, float) { return weight; };
  const auto calls = std::tuple{
      [&](auto& replica) { static_cast<void>(replica.all_reduce(dist::sum, 1.0f, soon)); },
      [&](auto& replica) {
        std::vector<float> values(100);
        replica.all_reduce(dist::sum, values, soon);
      },
      [&](auto& replica) { static_cast<void>(replica.all_reduce(dist::sum, dist::Tensor<float>{{3}}, soon)); },
      [&](auto& replica) {
        static_cast<void>(replica.all_reduce(dist::sum, std::pair{1, 2.5}, soon));
      },
      [&](auto& replica) { static_cast<void>(replica.all_reduce(dist::sum, variable, soon)); },
      [&](auto& replica) {
        static_cast<void>(replica.all_reduce(dist::sum, dist::IndexedSlices<float>{1, {3, 2}}, soon));
      },
      [&](auto& replica) { static_cast<void>(replica.all_gather(std::vector<int>{1}, 0, soon)); },
      [&](auto& replica) { static_cast<void>(replica.broadcast(1, 1, soon)); },
      [&](auto& replica) {
        std::vector<float> values(100);
        replica.reduce_and_apply(dist::sum, std::span{values}, std::span{values}, keep, soon);
      },
      [&](auto& replica) {
        std::vector<float> values(100);
        replica.reduce_scatter(dist::sum, std::span{values}, nothing, soon);
      },
      [&](auto& replica) {
        std::vector<float> values(100);
        replica.update_shards(std::span{values}, std::span{values}, keep, soon);
      },
      [&](auto& replica) {
        int mine = 0;
        replica.share("share", mine, nothing, soon);
      },
      [&](auto& replica) { replica.barrier(soon); }};
  const auto check = [&](const auto& call) {
    std::atomic<bool> late{false};
    bool in_time = false;
    try {
      strategy.run([&](auto& replica) {
        if (replica.replica_id().index() == 1)
          while (!late) std::this_thread::yield();
        try {
          call(replica);
        } catch (const dist::DeadlineExceeded&) {
          late = true;
          throw;
        }
      });
    } catch (const dist::ReplicaError& error) {
      try {
        std::rethrow_exception(error.cause());
      } catch (const dist::DeadlineExceeded&) {
        in_time = true;
      }
    }
    CHECK(in_time);
  };
  std::apply([&](const auto&... call) { (check(call), ...); }, calls);
}
