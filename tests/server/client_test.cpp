#include <dist/server/client.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dist/comm/local_transport.hpp>

#include "conformance/server_client.hpp"

namespace {

struct LocalKit {
  using Transport = dist::Local;

  static dist::net::Endpoint endpoint() { return {"here", "7"}; }
  class Peer {
   public:
    explicit Peer(const dist::net::Endpoint& own)
        : server_(std::in_place, own, dist::rpc::ServerOptions{},
                  dist::server::store_methods<dist::Local::Exchange>(store_)) {}
    void kill() { server_.reset(); }

   private:
    dist::server::Store store_;
    std::optional<dist::Local::Server> server_;
  };
};

}  // namespace

namespace conformance {
TEST_CASE_TEMPLATE_INSTANTIATE(server_clients, LocalKit);
}  // namespace conformance
