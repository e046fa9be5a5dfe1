#include <dist/rpc/grpc/channel.hpp>

#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <dist/net/listen.hpp>

#include <doctest/doctest.h>

#include "net/ports.hpp"
#include "support/grpc_suppressions.hpp"

namespace {

namespace rpc = dist::rpc;
using namespace std::chrono_literals;

/// Accepts connections, sends the same bytes to each, and then closes it or stays silent.
class Impostor {
 public:
  Impostor(const dist::net::Endpoint& own, std::string_view words, bool closes)
      : listening_(dist::net::listen_at(own, {})), thread_([this, words, closes] {
          std::vector<dist::io::Descriptor> silent;
          while (!stopped_) {
            dist::io::Descriptor peer{accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
            if (!peer) {
              std::this_thread::sleep_for(1ms);
              continue;
            }
            static_cast<void>(send(peer.get(), words.data(), words.size(), MSG_NOSIGNAL));
            if (!closes) silent.push_back(std::move(peer));
          }
        }) {}
  ~Impostor() {
    stopped_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stopped_{false};
  dist::io::Descriptor listening_;
  std::thread thread_;
};

}  // namespace

TEST_CASE("a call to a listener of another kind ends, at its deadline at the latest") {
  // The last one: HTTP/2 settings, a reply to call 1 without a status, and its end.
  const std::string_view nothing[] = {"", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes", "SSH-2.0-OpenSSH_9.2\r\n",
                                      std::string_view{"\0\0\0\4\0\0\0\0\0"
                                                       "\0\0\1\1\5\0\0\0\1"
                                                       "\x88",
                                                       19}};
  for (const std::string_view words : nothing)
    for (const bool closes : {true, false}) {
      const dist::net::Endpoint endpoint = dist_test::free_endpoints(1).front();
      const Impostor impostor{endpoint, words, closes};
      dist::grpc::Channel channel{endpoint, {.silence = 600ms}};
      const auto start = std::chrono::steady_clock::now();
      try {
        channel.call("echo", {}, {5s, false});
        FAIL("the call has a reply");
      } catch (const dist::RpcError& error) {
        CAPTURE(std::string{error.what()});
        CHECK((rpc::is_lost(error) || error.failure() == rpc::Failure::refused ||
               error.failure() == rpc::Failure::deadline));
      }
      CHECK(std::chrono::steady_clock::now() - start < 1min);
    }
}

TEST_CASE("calls, channels and replies can be destroyed in any order") {
  const dist::net::Endpoint endpoint = dist_test::free_endpoints(1).front();
  std::vector<dist::grpc::Call> calls;
  for (int i = 0; i < 20; ++i) {
    dist::grpc::Channel channel{endpoint, {}};
    CHECK(channel.state() == rpc::State::idle);
    for (int k = 0; k < 3; ++k) calls.push_back(channel.start("echo", {}, {10s, true}));
  }
  for (const dist::grpc::Call& call : calls) {
    CHECK(call.is_done());
    CHECK_THROWS_AS(call.wait(), dist::RpcError);
  }
}
