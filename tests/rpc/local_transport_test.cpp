#include <dist/rpc/local_transport.hpp>

#include <time.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "conformance/rpc_transport.hpp"

namespace {

struct LocalKit {
  using Transport = dist::Local;
  static constexpr bool pauses = false;

  static dist::net::Endpoint own_endpoint() { return endpoint(); }
  static dist::net::Endpoint endpoint() {
    static int port = 1000;
    return {"here", std::to_string(++port)};
  }
  class Peer {
   public:
    Peer(const dist::net::Endpoint& own, const std::string& secret) {
      dist::rpc::ServerOptions options;
      options.secret = secret;
      server_.emplace(own, options, conformance::rpc_methods<dist::Local>());
    }
    void kill() { server_.reset(); }

   private:
    std::optional<dist::Local::Server> server_;
  };
};

}  // namespace

TEST_CASE("a stopped server is lost for its callers, and calls that wait for the next server sleep") {
  using namespace std::chrono_literals;
  const dist::net::Endpoint here = LocalKit::endpoint();
  std::atomic<bool> runs{false}, ends{false};
  std::optional<dist::Local::Server> server;
  const auto compute = [&](dist::Local::Exchange& exchange) {
    runs = true;
    conformance::soon([&] { return ends.load(); });
    exchange.reply({});
  };
  server.emplace(here, dist::rpc::ServerOptions{},
                 std::vector<dist::rpc::Method<dist::Local::Exchange>>{{"compute", compute}});
  dist::Local::Channel channel{here, {}};
  std::thread caller([&] { channel.call("compute", {}, {}); });
  CHECK(conformance::soon([&] { return runs.load(); }));
  std::thread stopper([&] { server->stop(); });
  CHECK(conformance::soon([&] { return channel.state() == dist::rpc::State::lost; }));
  const auto computed = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
  };
  const auto before = computed();
  CHECK(conformance::rpc_error([&] {
          channel.call("compute", {}, {500ms, true});
        }).failure() == dist::rpc::Failure::deadline);
  CHECK(computed() - before < 250ms);
  ends = true;
  stopper.join();
  caller.join();
}

namespace conformance {
TEST_CASE_TEMPLATE_INSTANTIATE(rpc_transports, LocalKit);
}  // namespace conformance
