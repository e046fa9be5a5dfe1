#include <dist/comm/mpi/rpc/peers.hpp>

#include <doctest/doctest.h>

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "support/processes.hpp"

namespace {

using namespace std::chrono_literals;
using dist::mpi::detail::MemberIdentity;
using dist::mpi::detail::Peers;
using Interest = Peers::Interest;

MemberIdentity member(std::size_t rank, pid_t pid, std::uint64_t space) {
  MemberIdentity identity{.worker = rank, .process_space = space, .pid = pid};
  std::memcpy(identity.host.data(), "east", 4);
  return identity;
}

}  // namespace

TEST_CASE("the end of a process of this machine is seen, once, and says who it was") {
  support::Processes others(2, [](std::size_t) {
    pause();
    return 0;
  });
  const std::uint64_t here = dist::process_space();
  REQUIRE(here != 0);
  Peers peers{{member(0, getpid(), here), member(1, others[0], here), member(2, others[1], here + 1)}, 0};
  CHECK(peers.name(1) == "rank 1 on host east");
  std::vector<std::string> ended;
  const auto look = [&] {
    peers.look_for_ends([&](std::size_t peer, std::string why) {
      ended.push_back(why);
      peers.lose(peer, std::move(why), true);
    });
  };
  look();
  CHECK(ended.empty());
  kill(others[0], SIGKILL);
  kill(others[1], SIGKILL);  // on a machine that this one cannot see
  for (int again = 0; again < 1000 && ended.empty(); ++again) {
    std::this_thread::sleep_for(5ms);
    look();
  }
  look();
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].find("rank 1 on host east: its process " + std::to_string(others[0])) == 0);
  CHECK(peers.lost(1) == ended[0]);
  CHECK(peers.is_dead(1));
  CHECK_FALSE(peers.lost(2));
}

TEST_CASE("a process with users is asked for signs of life, and is lost when it gives none") {
  Peers peers{{member(0, 1, 0), member(1, 2, 0), member(2, 3, 0)}, 0};
  const std::vector<Interest> interest{{1, 900ms}, {2, 900ms}, {}};
  std::vector<std::size_t> pinged;
  std::string lost;
  Peers::Clock::time_point now = Peers::Clock::now();
  const auto look_after = [&](std::chrono::milliseconds time, bool was_away = false) {
    now += time;
    peers.look_for_silence(
        interest, now, was_away, [&](std::size_t peer) { pinged.push_back(peer); },
        [&](std::size_t peer, std::string why) {
          lost = why;
          peers.lose(peer, std::move(why), false);
        });
  };
  look_after(0ms);  // from here on
  look_after(250ms);
  CHECK(pinged.empty());
  look_after(100ms);
  CHECK(pinged == std::vector<std::size_t>{1});  // not itself, nor one without users
  look_after(10ms);
  CHECK(pinged.size() == 1);
  look_after(200ms);
  CHECK(pinged.size() == 2);
  look_after(700ms, true);  // this process did not listen
  CHECK(lost.empty());
  look_after(890ms);
  CHECK(lost.empty());
  look_after(20ms);
  CHECK(lost == "rank 1 on host east: it has been silent for 0.9 s");
  CHECK(peers.lost(1) == lost);
  CHECK_FALSE(peers.is_dead(1));
  CHECK(peers.lost_for(1, Peers::Clock::now() + 5s) >= 5s);
  peers.lose(1, "another reason", true);
  CHECK(peers.lost(1) == lost);
  CHECK(peers.is_dead(1));
}

TEST_CASE("silence counts from the first call, and not while nobody uses the process") {
  Peers peers{{member(0, 1, 0), member(1, 2, 0)}, 0};
  bool lost = false;
  const auto look = [&](std::size_t users, std::chrono::milliseconds later) {
    const std::vector<Interest> interest{{}, {users, 100ms}};
    peers.look_for_silence(
        interest, Peers::Clock::now() + later, false, [](std::size_t) {},
        [&](std::size_t, const std::string&) { lost = true; });
  };
  look(0, 0ms);
  look(0, 10s);
  peers.meet(1);
  look(1, 50ms);
  CHECK_FALSE(lost);
  peers.hear(1);
  look(1, 99ms);
  CHECK_FALSE(lost);
  look(1, 150ms);
  CHECK(lost);
}
