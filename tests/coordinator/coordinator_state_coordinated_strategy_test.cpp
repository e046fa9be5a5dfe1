#include <dist/coordinator/coordinator_state.hpp>

#include <vector>

#include <dist/rpc/local_transport.hpp>

#include <doctest/doctest.h>

namespace {

/// The minimum that the concept requires, and near misses.
struct Archetype {
  using Transport = dist::Local;
  [[nodiscard]] std::vector<dist::net::Endpoint> worker_endpoints() const { return {}; }
  [[nodiscard]] std::vector<dist::net::Endpoint> server_endpoints() const { return {}; }
  [[nodiscard]] dist::rpc::ChannelOptions channel_options() const { return {}; }
  [[nodiscard]] std::size_t num_replicas_in_sync() const { return 1; }
  [[nodiscard]] dist::server::WorkerOptions worker_options() const { return {}; }
};
struct WithoutTransport : Archetype {
  using Transport = int;
};
struct WithoutWorkers : Archetype {
  void worker_endpoints() const {}
};
struct WithoutServers : Archetype {
  void server_endpoints() const {}
};
struct WithoutOptions : Archetype {
  void channel_options() const {}
};
struct WithoutReplicas : Archetype {
  void num_replicas_in_sync() const {}
};
struct WithoutWorkerOptions : Archetype {
  void worker_options() const {}
};

}  // namespace

TEST_CASE("CoordinatedStrategy accepts its archetype and rejects near misses") {
  static_assert(dist::CoordinatedStrategy<Archetype>);
  static_assert(dist::CoordinatedStrategy<dist::WorkerList<dist::Local>>);
  static_assert(!dist::CoordinatedStrategy<WithoutTransport>);
  static_assert(!dist::CoordinatedStrategy<WithoutWorkers>);
  static_assert(!dist::CoordinatedStrategy<WithoutServers>);
  static_assert(!dist::CoordinatedStrategy<WithoutOptions>);
  static_assert(!dist::CoordinatedStrategy<WithoutReplicas>);
  static_assert(!dist::CoordinatedStrategy<WithoutWorkerOptions>);
  const dist::WorkerList<dist::Local> list{{{"a", "1"}, {"b", "2"}}, {.secret = "s"}, {{"c", "3"}}};
  CHECK(list.worker_endpoints().size() == 2);
  CHECK(list.server_endpoints() == std::vector<dist::net::Endpoint>{{"c", "3"}});
  CHECK(list.channel_options().secret == "s");
  CHECK(list.num_replicas_in_sync() == 1);
  CHECK(list.worker_options().shared_memory == dist::server::SharedMemoryAccess::write);
}
