#include <dist/server/client.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <dist/rpc/local_transport.hpp>

#include <dist/nn/optimizers/sgd.hpp>

#include "conformance/server_client.hpp"
#include "support/allocations.hpp"

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
    dist::server::ShardServer store_;
    std::optional<dist::Local::Server> server_;
  };
};

}  // namespace

TEST_CASE("a push to and a pull from a shard in memory allocate nothing") {
  const LocalKit::Peer peer{LocalKit::endpoint()};
  dist::server::Client<dist::Local> client{0, LocalKit::endpoint()};
  client.create({1, "w", 16, 1, 0}, 0.0f);
  const std::vector<float> ones(16, 1);
  const auto push = [&] { client.push(1, dist::nn::SGD::Plain<float>{0.5f}, std::span{ones}); };
  push();  // finds the shard in the memory of the store
  std::vector<float> values(16);
  const std::size_t before = allocations;
  for (int i = 0; i < 1000; ++i) push();
  const std::size_t of_pushes = allocations;
  client.pull(1, std::span{values});
  const std::size_t of_first_pull = allocations;
  for (int i = 0; i < 1000; ++i) client.pull(1, std::span{values});
  CHECK(of_pushes - before == 0);
  CHECK(allocations - of_first_pull == 0);
  CHECK(values == std::vector<float>(16, -0.5F * 1001));
}

TEST_CASE("a client repeats a failed request for the location of its server's memory") {
  dist::server::ShardServer store;
  std::atomic<int> questions{0}, pushes{0};
  auto methods = dist::server::store_methods<dist::Local::Exchange>(store);
  for (auto& method : methods) {
    const auto handler = std::make_shared<decltype(method.handler)>(std::move(method.handler));
    method.handler = [&questions, &pushes, handler, name = method.name](dist::Local::Exchange& exchange) {
      if (name == "store.push") ++pushes;
      if (name == "store.place" && ++questions == 1) throw std::runtime_error("not now");
      (*handler)(exchange);
    };
  }
  const dist::Local::Server server{LocalKit::endpoint(), {}, std::move(methods)};
  dist::server::Client<dist::Local> client{0, LocalKit::endpoint()};
  client.create({1, "w", 2, 1, 0}, 0.0f);
  const std::vector<float> ones(2, 1);
  const auto push = [&] { client.push(1, dist::sum, std::span{ones}); };
  push();
  CHECK(questions == 1);
  CHECK(pushes == 1);
  for (int i = 0; i < 3; ++i) push();
  CHECK(questions == 2);
  CHECK(pushes == 1);
  CHECK(conformance::pulled<float>(client, 1, 2) == std::vector<float>{4, 4});
}

namespace conformance {
TEST_CASE_TEMPLATE_INSTANTIATE(server_clients, LocalKit);
}  // namespace conformance
