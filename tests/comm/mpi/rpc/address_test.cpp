#include <dist/comm/mpi/rpc/address.hpp>

#include <doctest/doctest.h>

#include "support/what_throws.hpp"

using dist::mpi::endpoint_of_rank;
using dist::mpi::rank_of;

TEST_CASE("the address of a process of MPI is its rank, and ports tell its servers apart") {
  CHECK(to_string(endpoint_of_rank(3)) == "rank-3:1");
  CHECK(to_string(endpoint_of_rank(0, 60'000)) == "rank-0:60000");
  CHECK(rank_of(endpoint_of_rank(3), 4) == 3);
  CHECK(rank_of({"rank-0", "17"}, 1) == 0);
}

TEST_CASE("what names no rank of the job is refused with the ranks that there are") {
  for (const char* const host :
       {"rank-4", "east", "rank-", "rank--1", "rank-1x", "rank- 1", "RANK-1", "rank-99999999999999999999999"})
    CHECK_THROWS_AS(static_cast<void>(rank_of({host, "1"}, 4)), dist::InvalidArgument);
  CHECK(
      support::what_throws<dist::InvalidArgument>([] {
        static_cast<void>(rank_of({"east", "2222"}, 4));
      }) ==
      "Address 'east:2222' is that of no process of MPI (MPI has started 4, rank-0 to rank-3). Take the list of tasks "
      "from dist::MpiRolesResolver, or let calls travel by dist::Grpc.");
}
