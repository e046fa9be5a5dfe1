// ranks: 2
#include <dist/comm/mpi/transfers.hpp>

#include <cstddef>
#include <span>

#include <doctest/doctest.h>
#include <support/rank_in.hpp>

using dist::mpi::detail::Transfer;
using dist::mpi::detail::Transfers;

namespace {

constexpr int tag = 20;
std::size_t rank() { return support::rank_in(MPI_COMM_WORLD); }

void complete(Transfers& transfers, Transfer& transfer) {
  while (!Transfers::is_done(transfer)) continue;
  transfers.finish(transfer);
}

}  // namespace

TEST_CASE("bytes are sent and received, and completed transfers are not in progress") {
  Transfers transfers;
  CHECK_FALSE(transfers.are_under_way());
  for (int round = 0; round < 3; ++round) {
    const int mine = 10 * round + static_cast<int>(rank());
    int theirs = -1;
    Transfer in =
        transfers.start_receive(MPI_COMM_WORLD, std::as_writable_bytes(std::span{&theirs, 1}), 1 - rank(), tag);
    Transfer out = transfers.start_send(MPI_COMM_WORLD, std::as_bytes(std::span{&mine, 1}), 1 - rank(), tag);
    CHECK(transfers.are_under_way());
    complete(transfers, in);
    CHECK(transfers.are_under_way());
    complete(transfers, out);
    CHECK_FALSE(transfers.are_under_way());
    CHECK(theirs == 10 * round + static_cast<int>(1 - rank()));
  }
}

TEST_CASE("cancelled receives take no messages, and stay in progress") {
  Transfers transfers;
  int first = -1;
  static_cast<void>(
      transfers.start_receive(MPI_COMM_WORLD, std::as_writable_bytes(std::span{&first, 1}), 1 - rank(), tag));
  transfers.cancel_receives();
  CHECK(transfers.are_under_way());
  MPI_Barrier(MPI_COMM_WORLD);
  const int mine = 7;
  int second = -1;
  Transfers others;
  Transfer in = others.start_receive(MPI_COMM_WORLD, std::as_writable_bytes(std::span{&second, 1}), 1 - rank(), tag);
  Transfer out = others.start_send(MPI_COMM_WORLD, std::as_bytes(std::span{&mine, 1}), 1 - rank(), tag);
  complete(others, in);
  complete(others, out);
  CHECK(first == -1);
  CHECK(second == 7);
}
