// ranks: 2
#include <dist/comm/mpi/rpc/postbox.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <utility>
#include <vector>

#include <dist/comm/mpi/comm_ref.hpp>

namespace {

using dist::mpi::detail::longest_packet;
using dist::mpi::detail::Postbox;

constexpr int tag = 5;

/// A communicator of the test's own, which returns errors.
struct OwnComm {
  OwnComm() {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  }
  OwnComm(const OwnComm&) = delete;
  OwnComm& operator=(const OwnComm&) = delete;
  ~OwnComm() { MPI_Comm_free(&comm); }
  MPI_Comm comm = MPI_COMM_NULL;
};

}  // namespace

TEST_CASE("packets arrive in the order in which a process sends them, whatever their sizes, also from itself") {
  const OwnComm own;
  Postbox postbox{own.comm, tag};
  constexpr std::size_t count = 100;
  for (std::size_t peer = 0; peer < 2; ++peer)
    for (std::size_t i = 0; i < count; ++i)
      postbox.send(peer, std::vector<std::byte>(i % 3 == 0 ? longest_packet : i, static_cast<std::byte>(i)));
  std::size_t next[2] = {0, 0};
  std::size_t refused = 0;
  while (next[0] < count || next[1] < count || !postbox.is_empty())
    postbox.advance(
        [&](std::size_t peer, std::vector<std::byte> bytes) {
          const std::size_t i = next[peer]++;
          CHECK(bytes == std::vector<std::byte>(i % 3 == 0 ? longest_packet : i, static_cast<std::byte>(i)));
        },
        [&](std::size_t) { ++refused; });
  CHECK(refused == 0);
  MPI_Barrier(own.comm);
}

TEST_CASE("what is longer than any packet is refused, and others go on") {
  const OwnComm own;
  const std::size_t rank = dist::mpi::detail::rank_in(own.comm);
  Postbox postbox{own.comm, tag};
  if (rank == 1) {
    const std::vector<std::byte> too_long(3 * longest_packet);
    MPI_Send(too_long.data(), static_cast<int>(too_long.size()), MPI_BYTE, 0, tag, own.comm);
    postbox.send(0, {std::byte{7}});
    while (!postbox.is_empty()) postbox.advance([](std::size_t, const std::vector<std::byte>&) {}, [](std::size_t) {});
  } else {
    std::vector<std::size_t> refused;
    bool taken = false;
    while (!taken)
      postbox.advance(
          [&](std::size_t peer, const std::vector<std::byte>& bytes) {
            CHECK(peer == 1);
            CHECK(bytes == std::vector<std::byte>{std::byte{7}});
            taken = true;
          },
          [&](std::size_t peer) { refused.push_back(peer); });
    CHECK(refused == std::vector<std::size_t>{1});
  }
  MPI_Barrier(own.comm);
}
