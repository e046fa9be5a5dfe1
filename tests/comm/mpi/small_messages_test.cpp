// ranks: 1 2 3
#include <dist/comm/mpi/small_messages.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <doctest/doctest.h>
#include <support/rank_in.hpp>

using dist::mpi::detail::Outbox;
using dist::mpi::detail::take_messages;

TEST_CASE("messages to several members arrive in order, and other tags are not affected") {
  constexpr int tag = 5;
  constexpr int other_tag = 6;
  constexpr std::uint64_t rounds = 50;
  const std::size_t rank = support::rank_in(MPI_COMM_WORLD);
  const std::size_t size = support::size_of(MPI_COMM_WORLD);
  std::vector<std::size_t> peers;
  for (std::size_t peer = 0; peer < size; ++peer)
    if (peer != rank) peers.push_back(peer);
  Outbox outbox;
  const std::uint64_t other = 77;
  outbox.send(MPI_COMM_WORLD, other_tag, std::as_bytes(std::span{&other, 1}), peers);
  for (std::uint64_t round = 0; round < rounds; ++round)
    outbox.send(MPI_COMM_WORLD, tag, std::as_bytes(std::span{&round, 1}), peers);
  std::vector<std::uint64_t> next(size, 0);
  std::size_t wrong = 0;
  for (std::size_t taken = 0; taken < rounds * peers.size();)
    take_messages<std::uint64_t>(MPI_COMM_WORLD, tag, [&](std::size_t peer, std::uint64_t round) {
      wrong += round != next[peer]++;
      ++taken;
    });
  CHECK(wrong == 0);
  std::size_t others = 0;
  while (others < peers.size())
    take_messages<std::uint64_t>(MPI_COMM_WORLD, other_tag, [&](std::size_t, std::uint64_t message) {
      wrong += message != 77;
      ++others;
    });
  CHECK(wrong == 0);
  MPI_Barrier(MPI_COMM_WORLD);
}
