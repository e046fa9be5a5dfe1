#include <dist/comm/local_transport.hpp>

#include <optional>
#include <string>

#include "conformance/rpc_transport.hpp"

namespace {

struct LocalKit {
  using Transport = dist::Local;
  static constexpr bool pauses = false;

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

namespace conformance {
TEST_CASE_TEMPLATE_INSTANTIATE(rpc_transports, LocalKit);
}  // namespace conformance
