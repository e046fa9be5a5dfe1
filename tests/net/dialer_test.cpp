#include <dist/net/dialer.hpp>

#include <doctest/doctest.h>
#include <sched.h>
#include <support/processes.hpp>
#include <support/stderr_of.hpp>

#include <cstdlib>
#include <fstream>
#include <thread>

#include <net/host.hpp>
#include <net/ports.hpp>

using dist::io::Descriptor;
using namespace std::chrono_literals;
using namespace dist::net;
using dist::concat;
using dist_test::free_endpoints;
using dist_test::Host;
using dist_test::worker;

namespace {

Connection call(const Endpoint& peer, const Handshake& hello, Dialer::Options options, Milliseconds within) {
  Dialer dialer{peer, hello, std::move(options)};
  return dial(dialer, concat("Worker 0 at ", to_string(peer)), within, Deadline::in(within));
}

/// Returns the error of a call that cannot succeed within `within`.
std::string last_problem(const Endpoint& peer, Dialer::Options options, Milliseconds within) {
  try {
    call(peer, worker(1), std::move(options), within);
    return "welcomed";
  } catch (const dist::DeadlineExceeded& error) {
    return error.what();
  }
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// A server that sends the text of the test over its first connection, while the object exists.
class Stranger {
 public:
  Stranger(const Endpoint& own, std::string says)
      : listening_(listen_at(own, {})), thread_([this, says = std::move(says)] {
          while (!stopped_) {
            Descriptor socket{accept(listening_.get(), nullptr, nullptr)};
            if (socket) {
              static_cast<void>(send(socket.get(), says.data(), says.size(), MSG_NOSIGNAL));
              connections_.push_back(std::move(socket));
            }
            std::this_thread::sleep_for(1ms);
          }
        }) {}
  ~Stranger() {
    stopped_ = true;
    thread_.join();
  }

 private:
  Descriptor listening_;
  std::atomic<bool> stopped_{false};
  std::vector<Descriptor> connections_;
  std::thread thread_;
};

}  // namespace

TEST_CASE("a peer that starts later is retried until it accepts") {
  const Endpoint peer = free_endpoints(1)[0];
  std::optional<Host> host;
  std::thread later{[&] {
    std::this_thread::sleep_for(150ms);
    host.emplace(peer, Host::Options{"", 4, 1});
  }};
  const auto start = std::chrono::steady_clock::now();
  const Connection connection = call(peer, worker(1), {}, 20s);
  later.join();
  CHECK(connection.open());
  std::printf("peer that came after 0.15 s found after %.3f s\n",
              std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

TEST_CASE("without a listener, the error names the peer and the reason") {
  const Endpoint peer = free_endpoints(1)[0];
  CHECK(last_problem(peer, {}, 100ms) ==
        concat("Worker 0 at ", to_string(peer),
               " has not joined within 0.1 s (Connection refused). Start it, check its address, check that no firewall "
               "blocks its port, or set a longer timeout."));
  const testing::Ending ending = testing::stderr_of([&] {
    Dialer dialer{peer, worker(1), {}};
    try {
      static_cast<void>(dial(dialer, "Worker 0", 200ms, Deadline::in(200ms), 20ms));
    } catch (const dist::DeadlineExceeded&) {
    }
  });
  CHECK(ending.stderr_text == "dist: Worker 0 has not joined yet (Connection refused); waiting up to 0.2 s\n");
}

TEST_CASE("an unknown host name is retried") {
  CHECK(contains(last_problem({"no-such-host.invalid", "2222"}, {}, 60ms),
                 "the name 'no-such-host.invalid' does not resolve"));
}

TEST_CASE("a connection to itself, through the peer's port, releases that port at once") {
  constexpr int not_allowed = 77;
  support::Processes process{
      1, [](std::size_t) {
        // A network with two local ports, one of which is the peer's.
        if (unshare(CLONE_NEWNET) != 0 || std::system("ip link set lo up 2>/dev/null") != 0 ||
            !(std::ofstream{"/proc/sys/net/ipv4/ip_local_port_range"} << "40000 40001" << std::flush))
          return not_allowed;
        const Endpoint peer{"127.0.0.1", "40000"};
        Dialer dialer{peer, worker(1), {}};
        const Deadline deadline = Deadline::in(10s);
        while (dialer.last_problem() != "no process listens there") {
          if (deadline.passed()) return 1;
          dialer.advance();
        }
        static_cast<void>(listen_at(peer, {.port_in_use = 0ms}));
        return 0;
      }};
  const int status = process.wait()[0];
  if (status == not_allowed) return;
  CHECK(status == 0);
}

TEST_CASE("a peer that is silent or violates the protocol is retried") {
  const Endpoint peer = free_endpoints(1)[0];
  {
    const Stranger mute{peer, ""};
    CHECK(contains(last_problem(peer, {"", 50ms}, 200ms), "connected, but the peer sends nothing"));
  }
  {
    const Stranger server{peer, "SSH-2.0-OpenSSH_9.2\r\n"};
    CHECK(contains(last_problem(peer, {}, 200ms), "the peer is not a process of this job: A peer uses another"));
  }
}

TEST_CASE("a late welcome is awaited, because the peer may have admitted the process already") {
  const Endpoint peer = free_endpoints(1)[0];
  HandshakeServer host{listen_at(peer, {}), {"", 4, 1}};
  std::vector<Accepted> guests;
  const auto advance_host = [&] {
    host.advance([](const Handshake&) { return std::optional<Refusal>{}; },
                 [&](Accepted guest) { guests.push_back(std::move(guest)); });
  };
  const auto has_visitor = [&] {
    std::vector<pollfd> entries;
    host.add_entries(entries);
    return entries.size() > 1;
  };
  Dialer dialer{peer, worker(1), {.attempt = 500ms}};
  while (!has_visitor()) {
    dialer.advance();
    advance_host();
  }
  for (int i = 0; i < 50; ++i) {  // the host never receives the hello
    dialer.advance();
    std::this_thread::sleep_for(1ms);
  }
  const std::string before = dialer.last_problem();
  std::this_thread::sleep_for(600ms);
  dialer.advance();
  CHECK(dialer.last_problem() == before);
  while (!dialer.welcomed()) {
    advance_host();
    dialer.advance();
  }
  CHECK(guests.size() == 1);
}

TEST_CASE("a permanent refusal is not retried") {
  const Endpoint peer = free_endpoints(1)[0];
  const Host host{peer, {"", 4, 1}};
  Dialer dialer{peer, worker(7), {}};
  CHECK_THROWS_WITH_AS(static_cast<void>(dial(dialer, "Worker 0", 20s, Deadline::in(20s))),
                       "no such rank (outside). count.", dist::RendezvousError);
  REQUIRE(dialer.refusal());
  CHECK(dialer.refusal()->problem == "no such rank");
}

TEST_CASE("a temporary refusal is retried for a while") {
  const Endpoint peer = free_endpoints(1)[0];
  Host host{peer, {"", 4, 1}};
  host.busy = true;
  CHECK_THROWS_WITH_AS(static_cast<void>(call(peer, worker(1), {.refusals = 100ms}, 20s)),
                       "busy (others are here). wait.", dist::RendezvousError);
  CHECK(contains(last_problem(peer, {.refusals = 20s}, 100ms), "(busy: others are here)"));
  std::thread later{[&] {
    std::this_thread::sleep_for(100ms);
    host.busy = false;
  }};
  CHECK(call(peer, worker(1), {.refusals = 20s}, 20s).open());
  later.join();
}

TEST_CASE("both sides prove that they have the secret") {
  const Endpoint peer = free_endpoints(1)[0];
  const auto problem = [&](const std::string& secret) -> std::string {
    try {
      call(peer, worker(1), {secret}, 20s);
      return "";
    } catch (const dist::RendezvousError& error) {
      return error.what();
    }
  };
  {
    const Host host{peer, {"the secret", 4, 1}};
    CHECK(contains(problem("another"), "does not have the secret of the job (its proof is wrong)"));
    CHECK(contains(problem(""), "does not have the secret of the job (it sent no proof)"));
    CHECK(problem("the secret") == "");
  }
  {
    const Host host{peer, {"", 4, 1}};
    CHECK(contains(problem("the secret"), "was started without the secret of the job"));
  }
}

TEST_CASE("a server that accepts all peers without the secret is rejected") {
  const Endpoint peer = free_endpoints(1)[0];
  std::vector<std::byte> says;
  RecordWriter challenge, welcome;
  challenge.number(std::uint8_t{1}).bytes(random_nonce());
  welcome.bytes(Proof{});
  append_frame(says, static_cast<std::uint16_t>(HandshakeStep::challenge), challenge.content());
  append_frame(says, static_cast<std::uint16_t>(HandshakeStep::welcome), welcome.content());
  const Stranger liar{peer, std::string{reinterpret_cast<const char*>(says.data()), says.size()}};
  CHECK_THROWS_WITH_AS(
      call(peer, worker(1), {"the secret"}, 20s),
      concat("The task at ", to_string(peer),
             " does not have the secret of the job (its proof is wrong). Give the same DIST_JOB_SECRET to all tasks.")
          .c_str(),
      dist::RendezvousError);
}
