#include <dist/comm/health/watchdog.hpp>

#include <doctest/doctest.h>

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <thread>

#include <dist/comm/health/peer_health.hpp>
#include <support/end_of.hpp>
#include <support/processes.hpp>

namespace {

using namespace std::chrono_literals;
using support::End;
using support::end_of;

constexpr dist::CollectiveCall call{.operation = "all_reduce", .reduction = "sum", .elements = 12, .dtype = "f32"};

/// A call that cannot be interrupted.
void stuck() {
  for (;;) pause();
}

}  // namespace

TEST_CASE("a call beyond its deadline ends the process, with the reason") {
  const End end = end_of([] {
    dist::PeerHealth health;
    dist::Watchdog watchdog{health, 300ms};
    const dist::Watchdog::Guard guard{&watchdog, call};
    stuck();
  });
  CAPTURE(end.said);
  CHECK(end.status == dist::Watchdog::exit_late);
  CHECK(end.said.find("stuck in all_reduce(sum) of 12 f32") != std::string::npos);
  CHECK(end.said.find("did not end in time") != std::string::npos);
}

TEST_CASE("a peer that dies during the call ends the process, with its name (spec O01)") {
  support::Processes peer(1, [](std::size_t) {
    std::this_thread::sleep_for(60s);
    return 0;
  });
  const End end = end_of([&] {
    dist::PeerHealth health;
    health.watch_process(3, "east", peer[0]);
    dist::Watchdog watchdog{health, 0ns};
    const dist::Watchdog::Guard guard{&watchdog, call};
    kill(peer[0], SIGKILL);
    stuck();
  });
  CAPTURE(end.said);
  MESSAGE("ended after " << end.took.count() << " ms");
  CHECK(end.took < 50s);  // the peer would live for 60 s
  CHECK(end.status == dist::Watchdog::exit_lost);
  CHECK(end.said.find("Worker 3 on host east is gone") != std::string::npos);
}

TEST_CASE("calls that end are not affected, even with dead peers and long total times") {
  const End end = end_of([] {
    dist::PeerHealth health;
    dist::Watchdog watchdog{health, 300ms};
    for (int round = 0; round < 6; ++round) {
      if (round == 3) health.lose({1, "east", "a test said so"});
      const dist::Watchdog::Guard guard{&watchdog, call};
      std::this_thread::sleep_for(100ms);
    }
    std::this_thread::sleep_for(400ms);
  });
  CAPTURE(end.said);
  CHECK(end.status == 0);
  CHECK(end.said == "");
}

TEST_CASE("a guard without a watchdog does nothing, and an idle watchdog ends at once") {
  const auto start = std::chrono::steady_clock::now();
  {
    dist::PeerHealth health;
    const dist::Watchdog watchdog{health, 1h};
    const dist::Watchdog::Guard guard{nullptr, call};
  }
  CHECK(std::chrono::steady_clock::now() - start < 1min);
}
