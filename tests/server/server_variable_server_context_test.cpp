#include <dist/server/server_variable.hpp>

#include <doctest/doctest.h>

#include <memory>

#include <dist/rpc/local_transport.hpp>

namespace {

using Clients = dist::server::Clients<dist::Local>;

struct Worker {
  template <class T>
  [[nodiscard]] dist::server::Clients<T>& clients() const {
    return *its_clients;
  }
  Clients* its_clients;
};
struct WithoutReference {
  template <class T>
  [[nodiscard]] std::shared_ptr<dist::server::Clients<T>> clients() const {
    return nullptr;
  }
};

static_assert(dist::ServerContext<Worker, dist::Local>);
static_assert(!dist::ServerContext<WithoutReference, dist::Local>);
static_assert(!dist::ServerContext<int, dist::Local>);

}  // namespace

TEST_CASE("clients_of returns the clients of a context") {
  Clients clients{{}, {}};
  CHECK(&dist::server::clients_of<dist::Local>(Worker{&clients}) == &clients);
}
