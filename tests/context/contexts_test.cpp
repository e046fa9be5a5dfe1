#include <dist/context/contexts.hpp>

#include <doctest/doctest.h>

TEST_CASE("a value context says for which replica of how many the value is (spec C19)") {
  const dist::ValueContext context{dist::ReplicaId{2}, 4};
  CHECK(context.replica_id().index() == 2);
  CHECK(context.num_replicas_in_sync() == 4);
}
