#include <dist/comm/mpi/wait.hpp>
// ranks: 2

#include <doctest/doctest.h>

#include <chrono>
#include <span>
#include <string>

#include <dist/comm/health/peer_health.hpp>

namespace {

using namespace std::chrono_literals;

int rank_here() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

}  // namespace

TEST_CASE("completed requests end the wait, with and without a deadline") {
  for (const auto timeout : {0s, 60s}) {
    int mine = rank_here();
    int theirs = -1;
    MPI_Request requests[2];
    MPI_Irecv(&theirs, 1, MPI_INT, 1 - mine, 5, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&mine, 1, MPI_INT, 1 - mine, 5, MPI_COMM_WORLD, &requests[1]);
    dist::PeerHealth health;
    CHECK_NOTHROW(dist::mpi::wait(requests, "An exchange", timeout, &health));
    CHECK(theirs == 1 - mine);
  }
}

TEST_CASE("a missing message ends the wait at the deadline, or when a peer is lost (spec H13)") {
  static int never = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(&never, 1, MPI_INT, 1 - rank_here(), 6, MPI_COMM_WORLD, &request);
  std::string message;
  try {
    dist::mpi::wait({&request, 1}, "A message", 30ms);
  } catch (const dist::DeadlineExceeded& error) {
    message = error.what();
  }
  CAPTURE(message);
  CHECK(message.find("A message did not end in time (waited 0.03") == 0);
  dist::PeerHealth health;
  health.lose({1, "east", "a test said so"});
  CHECK_THROWS_AS(dist::mpi::wait({&request, 1}, "A message", 60s, &health), dist::Unavailable);
  MPI_Cancel(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

TEST_CASE("a negative timeout throws") { CHECK_THROWS_AS(dist::mpi::wait({}, "Nothing", -1ns), dist::InvalidArgument); }
