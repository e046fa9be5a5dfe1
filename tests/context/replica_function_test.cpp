#include <dist/context/replica_function.hpp>

#include <doctest/doctest.h>

#include <array>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/strategy/default.hpp>
#include <dist/strategy/mirrored.hpp>

#include "support/stderr_of.hpp"

using dist::detail::require_outside_other_strategies;
using dist::detail::run_here;

TEST_CASE("the innermost guard sets the thread's run, and restores the previous one") {
  const int first = 0, second = 0;
  CHECK(!run_here.is_replica_function());
  {
    const dist::detail::RunGuard run{{.strategy = &first}};
    CHECK(run_here.is_replica_function());
    CHECK_NOTHROW(require_outside_other_strategies(&first, nullptr, "run"));
    CHECK_THROWS_AS(require_outside_other_strategies(&second, nullptr, "run"), dist::WrongStrategy);
    CHECK_NOTHROW(require_outside_other_strategies(&second, &first, "run"));
    {
      const dist::detail::RunGuard merging{{.strategy = &first, .is_merging = true}};
      CHECK(!run_here.is_replica_function());
      CHECK_NOTHROW(require_outside_other_strategies(&second, nullptr, "run"));
    }
    CHECK(run_here.strategy == &first);
    CHECK(run_here.is_replica_function());
    std::thread{[] { CHECK(run_here.strategy == nullptr); }}.join();
  }
  CHECK(run_here.strategy == nullptr);
}

TEST_CASE("using a replica context after its run breaks a contract") {
  using Mirrored = dist::Mirrored<dist::ThreadAllReduce>;
  const auto ending = testing::stderr_of([] {
    Mirrored strategy{1};
    auto counter = strategy.variable<int>({});
    std::optional<Mirrored::Context> kept;
    strategy.run([&](auto& replica) { kept = replica; });
    counter.assign(*kept, 1);
  });
  CHECK(ending.aborted);
  CHECK(ending.says("is_in_its_run()"));
  CHECK(!testing::stderr_of([] {
           dist::Default strategy;  // its replica functions do not check this
           auto counter = strategy.variable<int>({});
           counter.assign(strategy.run([](auto& replica) { return replica; }), 1);
         }).aborted);
}

using dist::PerReplica;
using dist::select_replica;

TEST_CASE("a replica receives its own value of a PerReplica, by reference (spec C01, F06)") {
  PerReplica<std::string> values(3, [](std::size_t i) { return std::string(i + 1, 'x'); });
  for (std::size_t replica = 0; replica < 3; ++replica) {
    CHECK(&select_replica(replica, values) == &values[replica]);
    CHECK(&select_replica(replica, std::as_const(values)) == &values[replica]);
  }
  select_replica(1, values) = "changed";
  CHECK(values[1] == "changed");
  CHECK(values[0] == "x");
  static_assert(std::is_same_v<decltype(select_replica(0, values)), std::string&>);
  static_assert(std::is_same_v<decltype(select_replica(0, std::as_const(values))), const std::string&>);
}

TEST_CASE("any other argument is passed whole to every replica (spec F06)") {
  std::vector<int> shared{1, 2, 3};
  for (std::size_t replica = 0; replica < 4; ++replica) CHECK(&select_replica(replica, shared) == &shared);
  static_assert(std::is_same_v<decltype(select_replica(0, std::as_const(shared))), const std::vector<int>&>);
}

TEST_CASE("only the outermost PerReplica is selected from") {
  PerReplica<PerReplica<int>> nested(
      2, [](std::size_t i) { return PerReplica<int>(3, [i](std::size_t j) { return static_cast<int>(10 * i + j); }); });
  CHECK(select_replica(1, nested).size() == 3);
  CHECK(select_replica(2, select_replica(1, nested)) == 12);
}

TEST_CASE("a value can be selected at compile time") {
  static constexpr int number = 5;
  static_assert(select_replica(3, number) == 5);
  CHECK(&select_replica(3, number) == &number);
}

TEST_CASE("a replica receives its own values of a structure of per-replica values (spec C01, F06)") {
  const auto numbers = [](int scale) {
    return PerReplica<int>(3, [scale](std::size_t i) { return scale * static_cast<int>(i); });
  };
  std::tuple arguments{numbers(1), std::string("shared"), std::pair{numbers(10), numbers(100)}};
  auto mine = select_replica(2, arguments);
  static_assert(std::is_same_v<decltype(mine), std::tuple<int&, std::string&, std::pair<int&, int&>>>);
  CHECK(&std::get<0>(mine) == &std::get<0>(arguments)[2]);
  CHECK(&std::get<1>(mine) == &std::get<1>(arguments));
  CHECK(std::get<1>(std::get<2>(mine)) == 200);
  std::array both{numbers(1), numbers(10)};
  CHECK(select_replica(1, both) == std::array{1, 10});
  std::optional<PerReplica<int>> nothing;
  CHECK(!select_replica(1, nothing));
  std::optional five{numbers(5)};
  CHECK(select_replica(1, five) == std::optional{5});
  std::tuple plain{1, 2.0};
  CHECK(&select_replica(1, plain) == &plain);
}

TEST_CASE("values for another number of replicas are refused, also inside structures (spec B14)") {
  const PerReplica<int> two(2);
  CHECK_NOTHROW(dist::require_value_per_replica(2, std::tuple{two, std::optional{std::array{two}}, 5}));
  CHECK_NOTHROW(dist::require_value_per_replica(3, std::optional<PerReplica<int>>{}));
  CHECK_THROWS_WITH_AS(dist::require_value_per_replica(3, two),
                       "run was given per-replica values of another strategy (2 values for 3 replicas). Use values "
                       "that this strategy's run or distribute_dataset returned.",
                       dist::WrongStrategy);
  CHECK_THROWS_AS(dist::require_value_per_replica(3, std::tuple{1, std::pair{2, two}}), dist::WrongStrategy);
  CHECK_THROWS_AS(dist::require_value_per_replica(3, std::array{std::optional{two}}), dist::WrongStrategy);
}

using View = dist::TensorView<const float>;
using dist::detail::returns_view;
using dist::detail::WithoutLasting;

static_assert(returns_view<View> && returns_view<std::span<int>> && returns_view<std::span<const int, 3>>);
static_assert(returns_view<std::string_view> && returns_view<std::tuple<int, View>>);
static_assert(returns_view<std::pair<std::optional<View>, int>> && returns_view<std::array<View, 2>>);
static_assert(!returns_view<void> && !returns_view<dist::Tensor<float>> && !returns_view<std::vector<int>>);
static_assert(!returns_view<const float*> && !returns_view<std::tuple<int, dist::Lasting<View>>>);
static_assert(std::same_as<WithoutLasting<std::tuple<int, dist::Lasting<View>>>::Type, std::tuple<int, View>>);
static_assert(std::same_as<WithoutLasting<std::optional<dist::Lasting<View>>>::Type, std::optional<View>>);

TEST_CASE("a view of lasting memory is returned as the view") {
  dist::Mirrored<dist::ThreadAllReduce> several{2};
  auto variable = several.variable<float>({3}, 2.0f);
  const auto views = several.run([&](auto& replica) { return dist::lasting(variable.read(replica)); });
  static_assert(std::same_as<decltype(views), const dist::PerReplica<View>>);
  CHECK(views[1].data() == variable.component(several.scope(), 1).data());
  const auto [numbers, pairs] = several.run([&](auto& replica) {
    return std::pair{replica.local_index(), dist::lasting(variable.component(replica))};
  });
  static_assert(std::same_as<decltype(pairs), const dist::PerReplica<std::span<float>>>);
  CHECK(numbers[1] == 1);
  CHECK(pairs[1].size() == 3);
  CHECK(several.reduce(dist::sum, views)[2] == 4.0f);

  dist::Default plain;
  auto alone = plain.variable<float>({3}, 2.0f);
  const auto view = plain.run([&](auto& replica) { return dist::lasting(alone.read(replica)); });
  static_assert(std::same_as<decltype(view), const View>);
  CHECK(view.data() == alone.component(plain.scope(), 0).data());
}

TEST_CASE("values other than views are returned unchanged") {
  dist::Default plain;
  int counter = 0;
  static_assert(std::same_as<decltype(plain.run([&](auto&) -> int& { return counter; })), int&>);
  CHECK(&plain.run([&](auto&) -> int& { return counter; }) == &counter);
  CHECK(*plain.run([](auto&) { return std::make_unique<int>(3); }) == 3);
}

using Context = dist::Default::Context;

TEST_CASE("a replica function is checked with the types that the replica receives (spec C01)") {
  using dist::PerReplica;
  const auto function = [](auto&, auto&& first, auto&& second) { return std::tuple{first, second}; };
  using Function = decltype(function);
  static_assert(std::is_same_v<dist::detail::Received<PerReplica<int>>, int&>);
  static_assert(std::is_same_v<dist::detail::Received<const PerReplica<int>&>, const int&>);
  static_assert(std::is_same_v<dist::detail::Received<std::tuple<PerReplica<int>, float>&>, std::tuple<int&, float&>>);
  CHECK(dist::detail::require_replica_function<Function, Context, PerReplica<int>&, const std::string&>());
  CHECK(std::is_same_v<dist::detail::Received<int>, int&>);
}
