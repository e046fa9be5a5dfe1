#include <dist/context/in_trace.hpp>

#include <doctest/doctest.h>

#include <dist/context/replica_context.hpp>
#include <dist/strategy/default.hpp>

namespace {

struct Tracing {
  static constexpr bool is_tracing = true;
};
struct Computing {
  static constexpr bool is_tracing = false;
};

}  // namespace

TEST_CASE("InTrace holds for contexts that declare it, and for none of a replica") {
  CHECK(dist::InTrace<Tracing>);
  CHECK(dist::InTrace<const Tracing&>);
  CHECK_FALSE(dist::InTrace<Computing>);
  CHECK_FALSE(dist::InTrace<int>);
  CHECK_FALSE(dist::InTrace<dist::ReplicaContext<dist::Default>>);
  CHECK_FALSE(dist::InReplica<Tracing>);
}
