// ranks: 1 2 3
#include <dist/comm/mpi/shutdown_barrier.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>

#include <support/rank_in.hpp>

using dist::mpi::ShutdownBarrier;
using namespace std::chrono_literals;

namespace {

std::string name_of(std::size_t rank) { return "worker " + std::to_string(rank) + " on host h" + std::to_string(rank); }

/// The error of a meeting.
template <class Error>
std::string refusal(ShutdownBarrier& farewell, std::chrono::nanoseconds timeout, dist::PeerHealth& health) {
  try {
    farewell.meet(timeout, health);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

/// By the clock of the machine, which all ranks share.
std::int64_t now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

}  // namespace

TEST_CASE("all meet in any order of arrival, with and without a deadline") {
  const std::size_t rank = support::rank_in(MPI_COMM_WORLD);
  const std::size_t size = support::size_of(MPI_COMM_WORLD);
  for (const std::chrono::nanoseconds timeout : {0ns, std::chrono::nanoseconds{20s}}) {
    ShutdownBarrier farewell{name_of(rank), rank};
    dist::PeerHealth health;
    if (rank == size - 1) std::this_thread::sleep_for(200ms);
    std::int64_t last_came = now();
    CHECK_NOTHROW(farewell.meet(timeout, health));
    const std::int64_t met = now();
    MPI_Bcast(&last_came, 1, MPI_INT64_T, static_cast<int>(size - 1), MPI_COMM_WORLD);
    CHECK(met >= last_came);
  }
}

TEST_CASE("only missing processes are named at the deadline") {
  const std::size_t rank = support::rank_in(MPI_COMM_WORLD);
  const std::size_t size = support::size_of(MPI_COMM_WORLD);
  if (size == 1) return;
  ShutdownBarrier farewell{name_of(rank), rank};
  dist::PeerHealth health;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) std::this_thread::sleep_for(1500ms);
  if (rank != 1) {
    const std::string said = refusal<dist::DeadlineExceeded>(farewell, 700ms, health);
    CHECK(said.find("Not all processes reached the end of the job within 0.7 s (" + name_of(rank) +
                    " has finished and waits for " + name_of(1) + ")") == 0);
  }
  CHECK_NOTHROW(farewell.meet(20s, health));  // it may still arrive
}

TEST_CASE("a lost process ends the wait") {
  const std::size_t rank = support::rank_in(MPI_COMM_WORLD);
  if (support::size_of(MPI_COMM_WORLD) == 1) return;
  ShutdownBarrier farewell{name_of(rank), rank};
  dist::PeerHealth health;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    health.lose({1, "h1", "a test says so"});
    CHECK(refusal<dist::Unavailable>(farewell, 20s, health).find("Worker 1 on host h1 is gone (a test says so)") == 0);
    dist::PeerHealth nothing_wrong;
    CHECK_NOTHROW(farewell.meet(20s, nothing_wrong));
  } else {
    std::this_thread::sleep_for(300ms);
    CHECK_NOTHROW(farewell.meet(20s, health));
  }
}
