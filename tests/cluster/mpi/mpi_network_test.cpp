#include <dist/cluster/mpi/mpi_network.hpp>
// ranks: 1 2 3

#include <doctest/doctest.h>

#include <cstddef>
#include <optional>
#include <type_traits>

#include <dist/comm/network.hpp>
#include <dist/strategy/workers.hpp>

static_assert(std::is_empty_v<dist::MpiNetwork>);
static_assert(dist::Network<dist::MpiNetwork::Membership>);
static_assert(dist::detail::WorkersNetwork<dist::MpiNetwork>);

TEST_CASE("a world creates memberships, which can be split and duplicated") {
  const dist::MpiNetwork::World world{dist::mpi::ref(MPI_COMM_WORLD)};
  const dist::MpiNetwork::Membership all = world.connect({.host = "here"});
  CHECK(all.size() == world.size());
  CHECK(all.host(0) == "here");
  const std::optional<dist::MpiNetwork::Membership> part = all.split(all.rank() % 2, {});
  REQUIRE(part.has_value());
  CHECK(part->rank() == all.rank() / 2);
  CHECK(part->size() == (all.size() + (all.rank() % 2 == 0 ? 1 : 0)) / 2);
  part->barrier();
  const std::optional<dist::MpiNetwork::Membership> first =
      all.split(all.rank() == 0 ? std::optional{std::size_t{7}} : std::nullopt, {});
  CHECK(first.has_value() == (all.rank() == 0));
  const dist::MpiNetwork::Membership again = all.duplicate({});
  CHECK(again.rank() == all.rank());
  CHECK(again.size() == all.size());
  again.barrier();
  all.barrier();
}
