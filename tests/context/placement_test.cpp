#include <dist/context/placement.hpp>

#include <doctest/doctest.h>

#include <dist/context/cross_replica_context.hpp>
#include <dist/strategy/central_storage.hpp>
#include <dist/strategy/default.hpp>

using Central = dist::CentralStorage<dist::Cpu>;

TEST_CASE("a strategy keeps a copy of a variable for each replica, or one for all (spec A01, A18)") {
  static_assert(dist::Placement<dist::OnEveryReplica> && dist::Placement<dist::OnParameterDevice>);
  static_assert(!dist::Placement<int>);
  CHECK(dist::stores_centrally<Central::Context>);
  CHECK(dist::stores_centrally<dist::CrossReplicaContext<Central>>);
  CHECK(!dist::stores_centrally<dist::Default::Context>);
}
