#include <dist/net/handshake_server.hpp>

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

#include <dist/net/dialer.hpp>
#include <net/host.hpp>
#include <net/ports.hpp>

using dist::io::Descriptor;
using namespace std::chrono_literals;
using namespace dist::net;
using dist_test::free_endpoints;
using dist_test::Host;
using dist_test::worker;

namespace {

Connection call(const Endpoint& peer, const Handshake& hello, const std::string& secret = "") {
  Dialer dialer{peer, hello, {secret}};
  return dial(dialer, "The host", 20s, Deadline::in(20s));
}

std::string problem_of(const Endpoint& peer, const Handshake& hello, const std::string& secret = "") {
  try {
    call(peer, hello, secret);
    return "";
  } catch (const dist::RendezvousError& error) {
    return error.what();
  }
}

/// Opens a connection that sends nothing by itself.
Descriptor connect_to(const Endpoint& peer) {
  SocketAddress address = resolve(peer).addresses.at(0);
  Descriptor socket{::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0)};
  REQUIRE(connect(socket.get(), address.get(), address.size) == 0);
  return socket;
}

void log_line(const Descriptor& socket, std::string_view bytes) {
  static_cast<void>(send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
}

/// Returns true if the host closes this connection within a second.
bool is_dropped(const Descriptor& socket) {
  timeval limit{1, 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  char bytes[4096];
  ssize_t size = 0;
  do size = recv(socket.get(), bytes, sizeof bytes, 0);
  while (size > 0);
  return size == 0 || errno == ECONNRESET;
}

std::string header(std::uint32_t length) {
  std::vector<std::byte> bytes;
  append_frame(bytes, static_cast<std::uint16_t>(HandshakeStep::hello), {});
  dist::io::store_little_endian(length, bytes.data() + 8);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

TEST_CASE("four ranks connect among silent, faulty and hostile connections") {
  const Endpoint own = free_endpoints(1)[0];
  const std::string secret = "0123456789abcdef";
  Host host{own, {secret, 4, 1, 200ms}};
  std::vector<Descriptor> hostile;
  for (int i = 0; i < 10; ++i) hostile.push_back(connect_to(own));  // silent
  hostile.push_back(connect_to(own));
  log_line(hostile.back(), header(0xFFFFFFFF));  // 4 GiB
  hostile.push_back(connect_to(own));
  log_line(hostile.back(), "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  hostile.push_back(connect_to(own));
  log_line(hostile.back(), std::string(100'000, '\xFF'));
  hostile.push_back(connect_to(own));
  log_line(hostile.back(), header(0).substr(0, 7));  // half a frame
  std::vector<std::thread> threads;
  std::atomic<int> refused{0};
  for (std::uint64_t i = 0; i < 10; ++i)
    threads.emplace_back([&, i] {
      if (!problem_of(own, worker(i % 4), "a guess").empty()) ++refused;
    });
  const auto start = std::chrono::steady_clock::now();
  for (std::uint64_t rank = 0; rank < 4; ++rank)
    threads.emplace_back([&, rank] { static_cast<void>(problem_of(own, worker(rank), secret)); });
  for (std::thread& thread : threads) thread.join();
  std::printf("4 of 4 ranks joined among 24 others in %.3f s\n",
              std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  for (int i = 0; i < 2000 && host.guests() < 4; ++i) std::this_thread::sleep_for(1ms);
  CHECK(host.guests() == 4);
  CHECK(refused == 10);
  for (const Descriptor& socket : hostile) CHECK(is_dropped(socket));
  host.stop();
  CHECK(host.reception().turned_away() == 24);
  CHECK(host.reception().pending() == 0);
}

TEST_CASE("refusals report their reason") {
  const Endpoint own = free_endpoints(1)[0];
  Host host{own, {"", 4, 1}};
  CHECK(problem_of(own, worker(0)) == "");
  CHECK(problem_of(own, worker(0)) == "Worker 0 has joined twice (again). count.");
  CHECK(problem_of(own, worker(1, 5)) ==
        "Worker 1 on host 'host' has another list of tasks (its list has 5 tasks, the list here has 4). Give the same "
        "cluster to all tasks.");
  CHECK(
      problem_of(own, worker(1, 4, 2)) ==
      "Worker 1 on host 'host' has another list of tasks (both have 4 tasks, but names, ports, order or the job's name "
      "differ). Give the same cluster to all tasks.");
  host.stop();
  REQUIRE(host.reception().other_list());
  CHECK(host.reception().turned_away() == 3);
  CHECK(host.reception().disagreement().find("Worker 1 on host 'host' has another list") == 0);
  CHECK(host.entered.size() == 1);
}

TEST_CASE("a peer without the secret cannot claim that lists differ") {
  const Endpoint own = free_endpoints(1)[0];
  Host host{own, {"the secret", 4, 1}};
  CHECK(problem_of(own, worker(1, 5), "a guess").find("does not have the secret") != std::string::npos);
  host.stop();
  CHECK_FALSE(host.reception().other_list());
}

TEST_CASE("with too many connections the oldest is dropped, and a rank still connects") {
  const Endpoint own = free_endpoints(1)[0];
  Host host{own, {"", 4, 1, 30s, 8}};
  std::vector<Descriptor> mute;
  for (int i = 0; i < 40; ++i) mute.push_back(connect_to(own));
  CHECK(problem_of(own, worker(2)) == "");
  host.stop();
  CHECK(host.entered.size() == 1);
  CHECK(host.reception().pending() <= 8);
  CHECK(host.reception().turned_away() >= 32);
}

TEST_CASE("a hello that arrives byte by byte is accepted if it is in time") {
  const Endpoint own = free_endpoints(1)[0];
  Host host{own, {"", 4, 1, 5s}};
  const Descriptor slow = connect_to(own);
  RecordWriter record;
  record.bytes(worker(3).record()).bytes(random_nonce()).bytes({});
  std::vector<std::byte> bytes;
  append_frame(bytes, static_cast<std::uint16_t>(HandshakeStep::hello), record.content());
  for (const std::byte& byte : bytes) {
    log_line(slow, {reinterpret_cast<const char*>(&byte), 1});
    std::this_thread::sleep_for(200us);
  }
  for (int i = 0; i < 2000 && host.guests() < 1; ++i) std::this_thread::sleep_for(1ms);
  host.stop();
  REQUIRE(host.entered.size() == 1);
  CHECK(host.entered[0].hello.rank == 3);
}

TEST_CASE("a peer that closes within its hello is dropped") {
  const Endpoint own = free_endpoints(1)[0];
  Host host{own, {"", 4, 1, 5s}};
  const Descriptor socket = connect_to(own);
  log_line(socket, header(10).substr(0, 10));
  shutdown(socket.get(), SHUT_WR);  // the open half shows when the host has noticed it
  CHECK(is_dropped(socket));
  CHECK(problem_of(own, worker(1)) == "");
  host.stop();
  CHECK(host.reception().pending() == 0);
  CHECK(host.reception().turned_away() == 1);
  CHECK(host.reception().last_problem() == "a peer closed the connection before it identified itself");
}
