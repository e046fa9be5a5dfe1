#include <dist/server/server_variable.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include <dist/rpc/local_transport.hpp>
#include <dist/server/archive.hpp>
#include <dist/server/shard_server.hpp>
#include <dist/variable/element_update.hpp>
#include <dist/variable/shard.hpp>

using dist::Local;
using dist::Shape;
using dist::Tensor;
using dist::TensorView;
using Shard = dist::ServerShard<float, Local>;

namespace {

/// A context with servers.
struct Worker {
  template <class T>
  [[nodiscard]] dist::server::Clients<T>& clients() const {
    return *its_clients;
  }
  dist::server::Clients<Local>* its_clients;
};
static_assert(dist::ServerContext<Worker, Local>);
static_assert(!dist::ServerContext<int, Local>);
static_assert(dist::StartsOperations<Shard, Worker>);

std::vector<float> numbers(TensorView<const float> values) {
  return {values.elements().begin(), values.elements().end()};
}

struct Served {
  dist::server::ShardServer store;
  dist::net::Endpoint place{"shards", "1"};
  Local::Server server{place, {}, dist::server::store_methods<Local::Exchange>(store)};
  dist::server::Clients<Local> clients{{place}, {}};
  Worker worker{&clients};
  Shard shard{{0, store.incarnation(), 1, "rows"}, Shape{3, 2}};

  Served() { clients.of(0, store.incarnation())->create<float>({1, "rows", 3, 2, 0}, 1.0F); }
};

}  // namespace

TEST_CASE("operations continue after they have been started") {
  Served served;
  const std::vector<float> values{0, 1, 2, 3, 4, 5};
  auto write = served.shard.start_write(served.worker, TensorView<const float>{values.data(), Shape{3, 2}}, dist::sum);
  write.wait();
  write.wait();
  CHECK(write.is_done());
  CHECK(write.result().version == 1);
  auto all = served.shard.start_read(served.worker);
  const std::vector<std::int64_t> rows{2, 0};
  auto some = served.shard.start_gather(served.worker, rows);
  all.wait();
  some.wait();
  CHECK(numbers(all.values()) == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(all.result() == 1);
  CHECK(some.values().shape() == Shape{2, 2});
  CHECK(numbers(some.values()) == std::vector<float>{5, 6, 1, 2});
  served.shard.start_write(served.worker, dist::same(2.0F), dist::detail::Assign{}).wait();
  auto again = served.shard.start_read(served.worker);
  again.wait();
  CHECK(numbers(again.values()) == std::vector<float>(6, 2.0F));
}

TEST_CASE("operations on zero rows send no message") {
  Served served;
  const dist::IndexedSlices<float> none(0, Shape{3, 2});
  served.server.stop();
  CHECK(served.shard.start_gather(served.worker, {}).is_done());
  auto scatter = served.shard.start_scatter(served.worker, none.view(), dist::sum);
  CHECK(scatter.is_done());
  CHECK_NOTHROW(scatter.wait());
}

TEST_CASE("a shard is archived as its address and shape") {
  const Shard shard{{2, 77, 5, "table/part_1"}, Shape{4, 3}};
  const Shard arrived = dist::from_bytes<Shard>(std::vector<dist::rpc::Chunk>{dist::to_bytes(shard)}, "A test");
  CHECK(arrived.place().server == 2);
  CHECK(arrived.place().incarnation == 77);
  CHECK(arrived.place().id == 5);
  CHECK(arrived.name() == "table/part_1");
  CHECK(arrived.shape() == Shape{4, 3});
}
