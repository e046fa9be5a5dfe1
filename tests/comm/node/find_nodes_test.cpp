#include <dist/comm/node/find_nodes.hpp>
// ranks: 1 2 3 4

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include <dist/comm/mpi/communicator.hpp>

#include <doctest/doctest.h>

#include <support/node_group.hpp>

namespace {

constexpr std::size_t bytes = std::size_t{1} << 20;

dist::mpi::Communicator world(const std::string& host) {
  return dist::mpi::Communicator{dist::mpi::ref(MPI_COMM_WORLD), {.host = host}};
}

TEST_CASE("processes of one host form one node and access each other's memory") {
  const auto all = world("here");
  dist::SharedMemory mine{bytes};
  const dist::FoundNodes nodes = dist::find_nodes(all, mine, 8, false);
  CHECK(nodes.layout.groups() == 1);
  CHECK(nodes.layout.size() == all.size());
  CHECK(nodes.layout.rank() == all.rank());
  REQUIRE(nodes.peers.size() == all.size() - 1);
  for (std::size_t i = 0; i < 16; ++i) CHECK(mine.data()[i] == std::byte{0});
  MPI_Barrier(MPI_COMM_WORLD);
  mine.data()[100] = static_cast<std::byte>(all.rank() + 1);
  MPI_Barrier(MPI_COMM_WORLD);
  for (const auto& peer : nodes.peers) CHECK(peer.memory.data()[100] == static_cast<std::byte>(peer.worker + 1));
}

TEST_CASE("processes of different hosts form different nodes with members in rank order") {
  const auto all = world(support::DealtNodes::host(world("x").rank()));
  dist::SharedMemory mine{bytes};
  const dist::FoundNodes nodes = dist::find_nodes(all, mine, 0, false);
  CHECK(nodes.layout.groups() == (all.size() == 1 ? 1 : 2));
  CHECK(nodes.layout.group() == all.rank() % 2);
  const auto members = nodes.layout.members(nodes.layout.group());
  for (std::size_t i = 0; i < members.size(); ++i) CHECK(members[i] == 2 * i + all.rank() % 2);
  CHECK(nodes.peers.size() == members.size() - 1);
}

TEST_CASE("with `separate` every process is a node by itself") {
  const auto all = world("here");
  dist::SharedMemory mine{bytes};
  const dist::FoundNodes nodes = dist::find_nodes(all, mine, 0, true);
  CHECK(nodes.layout.groups() == all.size());
  CHECK(nodes.layout.in_order());
  CHECK(nodes.peers.empty());
}

}  // namespace
