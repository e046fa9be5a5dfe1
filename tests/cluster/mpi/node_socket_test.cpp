#include <dist/cluster/mpi/node_socket.hpp>

#include <doctest/doctest.h>

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include <dist/cluster/mpi/session_folder.hpp>
#include <support/processes.hpp>

using dist::detail::NodeSocket;
using namespace std::chrono_literals;

namespace {

/// Polls until `holds()`, at most for 10 s.
template <class Holds>
bool becomes_true(Holds&& holds) {
  for (const auto end = std::chrono::steady_clock::now() + 10s; std::chrono::steady_clock::now() < end;) {
    if (holds()) return true;
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

}  // namespace

TEST_CASE("a rank that a signal has stopped is detected and killed, and no other process") {
  const dist::detail::SessionFolder folder;
  const std::string path = folder.path() + "/door";
  NodeSocket door{path};
  support::Processes ranks{3, [&](std::size_t rank) {
                             const dist::io::Descriptor shown = NodeSocket::show(path, rank + 10);
                             if (rank != 2) raise(SIGSTOP);
                             std::this_thread::sleep_for(rank == 2 ? 300ms : 60s);
                             return 7;
                           }};
  CHECK(becomes_true([&] {
    door.advance();
    return door.is_stopped(10) && door.is_stopped(11);
  }));
  CHECK_FALSE(door.is_stopped(12));
  CHECK_FALSE(door.is_stopped(0));
  door.end(10);
  door.end(99);
  CHECK(becomes_true([&] { return !door.is_stopped(10); }));
  CHECK(door.is_stopped(11));
  kill(ranks[1], SIGKILL);
  CHECK(ranks.wait() == std::vector<int>{128 + SIGKILL, 128 + SIGKILL, 7});
}

TEST_CASE("a connection without data, or that has closed, is not a rank") {
  const dist::detail::SessionFolder folder;
  const std::string path = folder.path() + "/door";
  NodeSocket door{path};
  support::Processes gone{1, [&](std::size_t) { return NodeSocket::show(path, 1) ? 0 : 1; }};
  CHECK(gone.wait() == std::vector<int>{0});
  dist::io::Descriptor mute{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const sockaddr_un address = dist::detail::door_address(path);
  REQUIRE(connect(mute.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  door.advance();
  std::vector<pollfd> entries;
  door.add_entries(entries);
  CHECK(entries.size() == 2);  // the listening socket, and the silent connection
  mute.reset();
  door.advance();
  entries.clear();
  door.add_entries(entries);
  CHECK(entries.size() == 1);
  door.end(1);  // does not kill this process
}

TEST_CASE("an invalid path, or one that is too long, is refused") {
  CHECK_THROWS_AS(NodeSocket{"/no/such/folder/door"}, dist::RendezvousError);
  CHECK_THROWS_AS(static_cast<void>(NodeSocket::show("/no/such/folder/door", 1)), dist::RendezvousError);
  CHECK_THROWS_AS(NodeSocket{"/tmp/" + std::string(200, 'x')}, dist::RendezvousError);
}
