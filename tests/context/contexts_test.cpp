#include <dist/context/contexts.hpp>

#include <doctest/doctest.h>

TEST_CASE("a value context has the replica's number and the number of replicas (spec C19)") {
  const dist::ValueContext context{dist::ReplicaId{2}, 4};
  CHECK(context.replica_id().index() == 2);
  CHECK(context.num_replicas_in_sync() == 4);
}
