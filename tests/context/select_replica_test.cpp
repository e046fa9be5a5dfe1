#include <dist/context/select_replica.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

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

TEST_CASE("any other argument reaches every replica whole (spec F06)") {
  std::vector<int> shared{1, 2, 3};
  for (std::size_t replica = 0; replica < 4; ++replica) CHECK(&select_replica(replica, shared) == &shared);
  static_assert(std::is_same_v<decltype(select_replica(0, std::as_const(shared))), const std::vector<int>&>);
}

TEST_CASE("only the outermost PerReplica is taken apart") {
  PerReplica<PerReplica<int>> nested(
      2, [](std::size_t i) { return PerReplica<int>(3, [i](std::size_t j) { return static_cast<int>(10 * i + j); }); });
  CHECK(select_replica(1, nested).size() == 3);
  CHECK(select_replica(2, select_replica(1, nested)) == 12);
}

TEST_CASE("a value is selected at compile time too") {
  static constexpr int number = 5;
  static_assert(select_replica(3, number) == 5);
  CHECK(&select_replica(3, number) == &number);
}

TEST_CASE("of a structure that holds per-replica values a replica receives the structure of its own (spec C01, F06)") {
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

TEST_CASE("values of another number of replicas are refused, also inside structures (spec B14)") {
  const PerReplica<int> two(2);
  CHECK_NOTHROW(dist::require_value_per_replica(2, std::tuple{two, std::optional{std::array{two}}, 5}));
  CHECK_NOTHROW(dist::require_value_per_replica(3, std::optional<PerReplica<int>>{}));
  CHECK_THROWS_WITH_AS(dist::require_value_per_replica(3, two),
                       "run was given per-replica values of another strategy (2 values for 3 replicas). Use what this "
                       "strategy's run or distribute_dataset returned.",
                       dist::WrongStrategy);
  CHECK_THROWS_AS(dist::require_value_per_replica(3, std::tuple{1, std::pair{2, two}}), dist::WrongStrategy);
  CHECK_THROWS_AS(dist::require_value_per_replica(3, std::array{std::optional{two}}), dist::WrongStrategy);
}
