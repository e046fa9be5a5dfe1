#include <dist/context/select_replica.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
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
