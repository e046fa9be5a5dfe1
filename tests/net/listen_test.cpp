#include <dist/net/listen.hpp>

#include <doctest/doctest.h>
#include <support/stderr_of.hpp>

#include <fcntl.h>

#include <thread>

#include <net/ports.hpp>

using namespace std::chrono_literals;
using dist::io::Descriptor;
using dist::net::listen_at;
using dist::net::ListenOptions;
using dist_test::free_endpoints;

namespace {

std::string problem_of(const dist::net::Endpoint& own, const ListenOptions& options) {
  try {
    const Descriptor socket = listen_at(own, options);
    return "";
  } catch (const dist::RendezvousError& error) {
    return error.what();
  }
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("listen_at uses its own address only, and the socket is not inherited") {
  const auto own = free_endpoints(1)[0];
  const Descriptor socket = listen_at(own, {});
  dist::net::SocketAddress bound;
  bound.size = sizeof bound.storage;
  REQUIRE(getsockname(socket.get(), bound.get(), &bound.size) == 0);
  CHECK(to_string(bound) == "127.0.0.1");
  CHECK((fcntl(socket.get(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("a port in use is retried for a while, then reported") {
  const auto own = free_endpoints(1)[0];
  Descriptor holder = listen_at(own, {});
  const std::string problem = problem_of(own, {false, 120ms, 0ms});
  CHECK(contains(problem, dist::concat("This task cannot listen at its own address ", to_string(own))));
  CHECK(contains(problem, "Address already in use"));
  CHECK(contains(problem, "If two processes were started with the same index, give each its own"));
  CHECK(contains(problem, "or list another port"));
  CHECK(testing::stderr_of([&] {
          static_cast<void>(problem_of(own, {false, 120ms, 0ms, 10ms}));
        }).stderr_text == dist::concat("dist: this task cannot listen at its own address ", to_string(own),
                                       " yet (127.0.0.1: Address already in use); trying up to 0.12 s\n"));
  std::thread end_of_holder{[&] {
    std::this_thread::sleep_for(100ms);
    holder.reset();
  }};
  CHECK(problem_of(own, {false, 20s, 0ms}) == "");
  end_of_holder.join();
}

TEST_CASE("an address that this machine does not have is retried, then reported") {
  const testing::Ending waited = testing::stderr_of([] {
    static_cast<void>(problem_of({"192.0.2.7", "23456"}, {false, 0ms, 120ms, 10ms}));
  });
  CHECK(waited.stderr_text ==
        "dist: this task cannot listen at its own address 192.0.2.7:23456 yet (192.0.2.7: Cannot assign requested "
        "address); trying up to 0.12 s\n");
  const std::string problem = problem_of({"192.0.2.7", "23456"}, {false, 20s, 0ms});
  CHECK(contains(problem, "its own address 192.0.2.7:23456 (192.0.2.7: "));
  CHECK(contains(problem, "The address does not belong to this machine"));
}

TEST_CASE("wildcard addresses are refused") {
  for (const char* host : {"0.0.0.0", "::"})
    CHECK(contains(problem_of({host, "23456"}, {}), "stands for all interfaces"));
}

TEST_CASE("a loopback address is refused if peers are on other hosts") {
  CHECK(contains(problem_of({"localhost", "23456"}, {true}), "List a network address of this machine"));
  // A numeric address that does not look like loopback, like names in /etc/hosts that resolve to 127.0.1.1.
  const std::string problem = problem_of({"0x7f000101", "23456"}, {true});
  CHECK(contains(problem, "is reachable only from this machine ('0x7f000101' resolves to 127.0.1.1 here"));
  CHECK(contains(problem, "/etc/hosts"));
}

TEST_CASE("a loopback address listens on all interfaces if requested") {
  const auto own = free_endpoints(1)[0];
  ListenOptions options;
  options.widen_loopback = true;
  CHECK(dist::net::own_address(listen_at(own, options).get()).is_loopback());
  options.peers_elsewhere = true;
  const dist::net::SocketAddress address = dist::net::own_address(listen_at(own, options).get());
  CHECK(address.is_any());
  CHECK(std::to_string(address.port()) == own.port);
}

TEST_CASE("an unknown host name is retried, then reported") {
  const std::string problem = problem_of({"no-such-host.invalid", "23456"}, {false, 0ms, 60ms});
  CHECK(contains(problem,
                 "its own address no-such-host.invalid:23456 (the name 'no-such-host.invalid' does not resolve"));
}

TEST_CASE("a port that is not a number is refused at once") {
  CHECK_THROWS_AS(static_cast<void>(listen_at({"127.0.0.1", "ssh"}, {})), dist::InvalidArgument);
}
