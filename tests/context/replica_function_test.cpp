#include <dist/context/replica_function.hpp>

#include <doctest/doctest.h>

#include <string>
#include <tuple>
#include <type_traits>

#include <dist/strategy/default.hpp>

using Context = dist::Default::Context;

TEST_CASE("a replica function is asked with what the replica receives (spec C01)") {
  using dist::PerReplica;
  const auto function = [](auto&, auto&& first, auto&& second) { return std::tuple{first, second}; };
  using Function = decltype(function);
  static_assert(std::is_same_v<dist::detail::Received<PerReplica<int>>, int&>);
  static_assert(std::is_same_v<dist::detail::Received<const PerReplica<int>&>, const int&>);
  static_assert(std::is_same_v<dist::detail::Received<std::tuple<PerReplica<int>, float>&>, std::tuple<int&, float&>>);
  CHECK(dist::detail::require_replica_function<Function, Context, PerReplica<int>&, const std::string&>());
  CHECK(std::is_same_v<dist::detail::Received<int>, int&>);
}
