// Survivors when a process of the job is killed, stopped, or exits without notice. The test starts itself under mpirun
// to observe the end.
#include <dist/comm/mpi/mpi_all_reduce.hpp>

#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <dist/comm/health/peer_health.hpp>
#include <dist/comm/health/watchdog.hpp>
#include <dist/comm/mpi/environment.hpp>
#include <dist/comm/ring_all_reduce.hpp>

#include "support/own_mpirun.hpp"

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::size_t victim = 1;
std::size_t count_of(const std::string& output, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = output.find(part); at != std::string::npos; at = output.find(part, at + 1)) ++count;
  return count;
}

/// The output of three workers that meet `fault` with a policy.
std::string run_workers(std::string_view policy, std::string_view fault, int seconds = 30) {
  return support::output_of({.processes = 3,
                             .test_case = "a worker",
                             .environment = dist::concat("DIST_TEST_POLICY=", policy, " DIST_TEST_FAULT=", fault),
                             .seconds = seconds});
}

template <class Ops>
void meet_fault(const dist::mpi::Communicator& comm, std::string_view fault) {
  const typename Ops::template On<dist::mpi::Communicator> ops{comm};
  const bool strikes_here = comm.rank() == victim;
  std::vector<float> values(1 << 20, 1.0f);
  const auto all_reduce = [&](auto op) { ops.all_reduce(op, std::span<float>{values}); };
  all_reduce(dist::sum);
  if (fault == "killed_between") {
    if (strikes_here) raise(SIGKILL);
  } else if (fault == "leaves") {
    if (strikes_here) _exit(0);
  } else if (fault == "killed_inside") {
    // The others are in the collective: nothing is announced.
    const typename Ops::template On<dist::mpi::Communicator> unchecked{comm.with_checks(dist::CollectiveChecks::none)};
    for (int round = 0; round < 10; ++round) {
      if (strikes_here && round == 5) raise(SIGKILL);
      unchecked.all_reduce(dist::sum, std::span<float>{values});
    }
  } else if (fault == "stopped") {
    if (strikes_here) {
      raise(SIGSTOP);
      return;
    }
    const auto start = Clock::now();
    try {
      all_reduce(dist::sum);
    } catch (const dist::Error&) {
      std::printf("waited %d ms\n", static_cast<int>((Clock::now() - start) / 1ms));
      throw;
    }
  } else if (fault == "stopped_for_a_while") {
    const auto start = Clock::now();
    if (strikes_here) {
      if (fork() == 0) {
        std::this_thread::sleep_for(500ms);
        kill(getppid(), SIGCONT);
        _exit(0);
      }
      raise(SIGSTOP);
    }
    all_reduce(dist::sum);
    if (values[7] == 9.0f && Clock::now() - start >= 400ms) std::printf("exact after a stop\n");
    return;
  }
  all_reduce(dist::sum);
}

/// True if all workers that ended with an error did so before the deadline of the watchdog, 20 s.
bool in_time(const std::string& output) {
  for (std::size_t at = output.find("ended after "); at != std::string::npos; at = output.find("ended after ", at + 1))
    if (std::atoi(output.c_str() + at + 12) >= 15'000) return false;
  return count_of(output, "ended after ") > 0;
}

}  // namespace

TEST_CASE("a worker" * doctest::skip()) {
  const std::string policy = std::getenv("DIST_TEST_POLICY");
  const std::string fault = std::getenv("DIST_TEST_FAULT");
  dist::mpi::Environment environment;
  dist::PeerHealth health;
  dist::Watchdog watchdog{health, 20s};
  const dist::mpi::Communicator comm{
      dist::mpi::ref(MPI_COMM_WORLD),
      {.timeout = fault == "stopped" ? 1s : 20s, .health = &health, .watchdog = &watchdog}};
  comm.watch_processes(health);
  const auto start = Clock::now();
  try {
    if (policy == "ring")
      meet_fault<dist::RingAllReduce>(comm, fault);
    else
      meet_fault<dist::MpiAllReduce>(comm, fault);
  } catch (const dist::Error& error) {
    std::printf("worker %zu ended after %d ms: %s\n", comm.rank(), static_cast<int>((Clock::now() - start) / 1ms),
                error.what());
    environment.abandon();
    std::fflush(nullptr);
    std::this_thread::sleep_for(1s);  // mpirun ends all when the first of them ends: lets the others print before
    if (fault == "stopped" && comm.rank() == 0) kill(0, SIGCONT);
  }
}

TEST_CASE("all survivors name a killed process in time (spec O01)") {
  for (const std::string_view policy : {"ring", "mpi"})
    for (const std::string_view fault : {"killed_between", "leaves"}) {
      const std::string output = run_workers(policy, fault);
      CAPTURE(policy);
      CAPTURE(fault);
      CAPTURE(output);
      CHECK(count_of(output, "Worker 1 on host ") >= 2);
      CHECK(count_of(output, " is gone (") >= 2);
      CHECK(count_of(output, "ended after ") == 2);
      CHECK(in_time(output));
    }
}

TEST_CASE("all survivors name a process killed inside a collective (spec O01)") {
  const std::string ring = run_workers("ring", "killed_inside");
  CAPTURE(ring);
  CHECK(count_of(ring, "ended after ") == 2);
  CHECK(count_of(ring, " is gone (") >= 2);
  CHECK(in_time(ring));
  // MPI does not return from its own call: the watchdog ends the process.
  const std::string mpi = run_workers("mpi", "killed_inside", 15);  // mpirun itself waits without limit
  CAPTURE(mpi);
  CHECK(count_of(mpi, "stuck in all_reduce(sum)") == 2);
  CHECK(count_of(mpi, "Worker 1 on host ") == 2);
}

TEST_CASE("a stopped process is reported as late and stopped; one that continues in time changes nothing (spec H13)") {
  for (const std::string_view policy : {"ring", "mpi"}) {
    const std::string late = run_workers(policy, "stopped");
    CAPTURE(late);
    CHECK(count_of(late, "reached a collective in time: worker 1 (host ") >= 2);
    CHECK(count_of(late, "waited 1") >= 2);
    const std::string on_time = run_workers(policy, "stopped_for_a_while");
    CAPTURE(on_time);
    CHECK(count_of(on_time, "exact after a stop") == 3);
  }
}
