#include <dist/comm/health/peer_health.hpp>

#include <doctest/doctest.h>

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <thread>

#include <support/processes.hpp>
#include <support/soon.hpp>

namespace {

using namespace std::chrono_literals;

/// Sleeps until it is killed.
int stay(std::size_t) {
  std::this_thread::sleep_for(60s);
  return 0;
}

bool is_lost_soon(dist::PeerHealth& health) {
  return support::soon([&] { return health.find_lost().has_value(); });
}

std::string what_look_says(dist::PeerHealth& health, std::optional<std::size_t> awaited = std::nullopt) {
  try {
    health.look(awaited);
  } catch (const dist::Unavailable& error) {
    return error.what();
  }
  return "all is well";
}

}  // namespace

TEST_CASE("look does not throw without peers") {
  dist::PeerHealth health;
  CHECK_NOTHROW(health.look());
  CHECK_NOTHROW(health.look(std::size_t{3}));
}

TEST_CASE("a killed process is detected, by its descriptor and by its number (spec A12, O01)") {
  for (const bool by_number : {false, true}) {
    CAPTURE(by_number);
    support::Processes peers(3, stay);
    dist::PeerHealth health;
    for (std::size_t rank = 0; rank < 3; ++rank) health.watch_process(rank + 10, "east", peers[rank], by_number);
    CHECK_NOTHROW(health.look());
    kill(peers[1], SIGKILL);
    CHECK(is_lost_soon(health));
    const std::string said = what_look_says(health);
    CAPTURE(said);
    CHECK(said.find("Worker 11 on host east is gone") == 0);
    CHECK(said.find(dist::concat("its process ", peers[1], " ended")) != std::string::npos);
    CHECK(what_look_says(health) == said);
  }
}

TEST_CASE("a process that exits without a message is lost, also if it exits before it is monitored") {
  support::Processes peers(2, [](std::size_t) { return 0; });
  dist::PeerHealth health;
  health.watch_process(1, "east", peers[0]);
  CHECK(is_lost_soon(health));
  const pid_t gone = peers[1];
  peers.wait();
  dist::PeerHealth late;
  late.watch_process(2, "west", gone, true);
  const std::string said = what_look_says(late);
  CAPTURE(said);
  CHECK(said.find("Worker 2 on host west") == 0);
}

TEST_CASE("a stopped process is not lost") {
  support::Processes peers(1, stay);
  dist::PeerHealth health;
  health.watch_process(1, "east", peers[0]);
  kill(peers[0], SIGSTOP);
  CHECK(support::soon([&] { return health.stopped() == dist::concat("worker 1 (process ", peers[0], ")"); }));
  CHECK_NOTHROW(health.look());
  support::Processes server(1, stay);
  health.watch_helper("the server", server[0]);
  kill(server[0], SIGSTOP);
  kill(peers[0], SIGCONT);
  CHECK(support::soon([&] { return health.stopped() == dist::concat("the server (process ", server[0], ")"); }));
}

TEST_CASE("a peer with completed work is an error only for processes that wait for it, after its last messages") {
  support::Processes peers(1, [](std::size_t) { return 0; });
  dist::PeerHealth health;
  health.watch_process(4, "east", peers[0]);
  health.lose({4, "east", "it had finished its work", true});
  peers.wait();
  CHECK_NOTHROW(health.look());
  CHECK_NOTHROW(health.look(std::size_t{3}));
  CHECK_NOTHROW(health.look(std::size_t{4}));  // its messages may be in transit
  std::this_thread::sleep_for(1100ms);
  CHECK_NOTHROW(health.look());
  CHECK_NOTHROW(health.look(std::size_t{3}));
  const std::string said = what_look_says(health, 4);
  CAPTURE(said);
  CHECK(said.find("Worker 4 on host east is gone (it had finished its work)") == 0);
}

TEST_CASE("a lifeline reports a lost process, and its end is a loss, too") {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  dist::PeerHealth health;
  health.watch_lifeline(ends[0], [&]() -> std::optional<dist::LostPeer> {
    char rank = 0;
    if (read(ends[0], &rank, 1) != 1) return dist::LostPeer{0, "south", "its connection ended"};
    if (rank == 'd') {
      health.lose({7, "north", "it had finished its work", true});
      return std::nullopt;
    }
    if (rank == 'x') return std::nullopt;
    return dist::LostPeer{static_cast<std::size_t>(rank), "north", "its machine said so"};
  });
  CHECK_NOTHROW(health.look());
  REQUIRE(write(ends[1], "xd", 2) == 2);
  CHECK_NOTHROW(health.look());
  CHECK_NOTHROW(health.look());
  std::this_thread::sleep_for(1100ms);
  CHECK(what_look_says(health, 7).find("Worker 7") == 0);
  SUBCASE("a message") {
    const char rank = 5;
    REQUIRE(write(ends[1], &rank, 1) == 1);
    CHECK(what_look_says(health).find("Worker 5 on host north is gone (its machine said so)") == 0);
  }
  SUBCASE("the end") {
    close(ends[1]);
    CHECK(what_look_says(health).find("Worker 0 on host south is gone (its connection ended)") == 0);
    ends[1] = -1;
  }
  close(ends[0]);
  if (ends[1] >= 0) close(ends[1]);
}

TEST_CASE("a loss replaces an earlier orderly end") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  dist::PeerHealth health;
  std::vector<dist::LostPeer> news{{1, "east", "its process ended", false}, {1, "east", "it had finished", true}};
  health.watch_lifeline(ends[0], [&]() -> std::optional<dist::LostPeer> {
    const dist::LostPeer next = news.back();
    if (news.size() > 1) news.pop_back();
    return next;
  });
  CHECK_NOTHROW(health.look());
  REQUIRE(write(ends[1], "x", 1) == 1);
  CHECK_NOTHROW(health.look());
  CHECK(what_look_says(health).find("Worker 1 on host east is gone (its process ended)") == 0);
  close(ends[0]);
  close(ends[1]);
}

TEST_CASE("losses detected by other processes count, and the first loss stays the first") {
  dist::PeerHealth health;
  health.lose({3, "east", "somebody said so"});
  health.lose({2, "west", "somebody said so"});
  health.lose({3, "east", "it had finished its work", true});
  CHECK(what_look_says(health).find("Worker 3 on host east is gone (somebody said so)") == 0);
}

TEST_CASE("any thread may call look") {
  support::Processes peers(1, stay);
  dist::PeerHealth health;
  health.watch_process(1, "east", peers[0]);
  std::thread other([&] {
    for (int i = 0; i < 1000; ++i) static_cast<void>(health.find_lost());
  });
  for (int i = 0; i < 1000; ++i) static_cast<void>(health.find_lost());
  kill(peers[0], SIGKILL);
  CHECK(is_lost_soon(health));
  other.join();
}

TEST_CASE("processes on one machine have the same process space") {
  CHECK(dist::process_space() == dist::process_space());
  const std::uint64_t mine = dist::process_space();
  support::Processes peers(1, [&](std::size_t) { return dist::process_space() == mine ? 0 : 1; });
  CHECK(peers.wait()[0] == 0);
}
