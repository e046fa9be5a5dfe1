// ranks: 1 2 3
#include <dist/comm/mpi/handshake.hpp>

#include <chrono>
#include <cstddef>
#include <string>

#include <doctest/doctest.h>
#include <support/rank_in.hpp>
#include <support/what_throws.hpp>

using dist::mpi::detail::introduce;
using namespace std::chrono_literals;

TEST_CASE("members get the identities of all, and their own communicator") {
  const std::size_t rank = support::rank_in(MPI_COMM_WORLD);
  const auto made = introduce(dist::mpi::ref(MPI_COMM_WORLD), {.timeout = 60s, .worker = 10 + rank, .host = "east"});
  REQUIRE(made->members.size() == support::size_of(MPI_COMM_WORLD));
  for (std::size_t member = 0; member < made->members.size(); ++member) {
    CHECK(made->members[member].worker == 10 + member);
    CHECK(std::string{made->members[member].host.data()} == "east");
  }
  CHECK(made->members[rank].pid == getpid());
  CHECK(made->count_near(rank) == made->members.size());
  int relation = 0;
  MPI_Comm_compare(made->comm, MPI_COMM_WORLD, &relation);
  CHECK(relation == MPI_CONGRUENT);
  MPI_Comm_free(&made->comm);
}

TEST_CASE("a long host name is truncated") {
  const auto made = introduce(dist::mpi::ref(MPI_COMM_WORLD), {.timeout = 60s, .host = std::string(1000, 'x')});
  CHECK(std::string{made->members[0].host.data()} == std::string(255, 'x'));
  MPI_Comm_free(&made->comm);
}

TEST_CASE("a missing member is an error at the deadline") {
  if (support::size_of(MPI_COMM_WORLD) > 1 && support::rank_in(MPI_COMM_WORLD) == 0)
    CHECK(support::what_throws<dist::DeadlineExceeded>([] {
            static_cast<void>(introduce(dist::mpi::ref(MPI_COMM_WORLD), {.timeout = 200ms}));
          }).find("The creation of a group of") != std::string::npos);
  MPI_Barrier(MPI_COMM_WORLD);
  // The others arrive late, so that MPI ends in order.
  if (support::size_of(MPI_COMM_WORLD) > 1 && support::rank_in(MPI_COMM_WORLD) != 0)
    static_cast<void>(
        support::what_throws([] { static_cast<void>(introduce(dist::mpi::ref(MPI_COMM_WORLD), {.timeout = 200ms})); }));
  MPI_Barrier(MPI_COMM_WORLD);
}
