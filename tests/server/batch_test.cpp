#include <dist/server/batch.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <coordinator/flaky_transport.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/rpc/local_transport.hpp>
#include <dist/server/server_variable.hpp>
#include <dist/server/shard_server.hpp>
#include <server/counted_servers.hpp>
#include <support/what_throws.hpp>

using dist::Local;
using dist::server::Pushed;
using dist::server::ShardAddress;
using Batch = dist::server::Batch<Local>;
using dist_test::CountedServers;

static_assert(dist::Future<Batch::Pull> && dist::Future<Batch::Push>);
static_assert(dist::ServerContext<Batch, Local>);

namespace {

using Floats = std::vector<float>;

/// Two servers with two shards of two floats each.
struct Four {
  CountedServers servers{2};
  std::array<ShardAddress, 4> shards{servers.create(0, 1, 2, 1), servers.create(1, 1, 2, 2), servers.create(0, 2, 2, 3),
                                     servers.create(1, 2, 2, 4)};
  Batch batch{servers.clients<Local>()};
};

}  // namespace

TEST_CASE("each server gets one message with all pulls, and one with all pushes") {
  Four four;
  const Floats ones{1, 1}, row{10};
  const std::vector<std::int64_t> second{1};
  std::vector<Batch::Push> pushes;
  pushes.push_back(four.batch.push(four.shards[0], dist::sum, std::span{ones}));
  pushes.push_back(four.batch.push_uniform(four.shards[1], dist::prod, 5.0F));
  pushes.push_back(four.batch.push_rows(four.shards[2], dist::sum, second, std::span{row},
                                        dist::server::DuplicateRows::in_order, {.version = 0}));
  pushes.push_back(four.batch.push(four.shards[2], dist::sum, std::span{ones}, {.version = 0}));
  CHECK(!pushes[0].is_done());
  CHECK(four.servers[0].pushes() == 0);
  four.batch.send();
  for (Batch::Push& push : pushes) push.wait();
  CHECK(four.servers[0].pushes() == 1);
  CHECK(four.servers[1].pushes() == 1);
  CHECK(pushes[1].result() == Pushed{1, 0});
  CHECK(pushes[2].result() == Pushed{1, 0});
  CHECK(pushes[3].result() == Pushed{2, 1});

  std::array<std::array<float, 2>, 4> values{};
  std::array<float, 1> one{};
  std::vector<Batch::Pull> pulls;
  for (std::size_t i = 0; i < 4; ++i) pulls.push_back(four.batch.pull(four.shards[i], std::span{values[i]}));
  pulls.push_back(four.batch.pull_rows(four.shards[2], second, std::span{one}));
  four.batch.send();
  for (Batch::Pull& pull : pulls) pull.wait();
  CHECK(four.servers[0].pulls() == 1);
  CHECK(four.servers[1].pulls() == 1);
  CHECK(four.servers[0].pushes() == 0);
  CHECK(values == std::array<std::array<float, 2>, 4>{{{2, 2}, {10, 10}, {4, 14}, {4, 4}}});
  CHECK(one[0] == 14);
  CHECK(pulls[2].result() == 2);
  CHECK(pulls[3].result() == 0);
}

TEST_CASE("unchanged shards are not sent") {
  Four four;
  Floats first{-1, -1}, second{-1, -1};
  const Floats ones{1, 1};
  four.servers.clients<Local>().of(0, four.shards[2].incarnation)->push(2, dist::sum, std::span{ones});
  auto unchanged = four.batch.pull(four.shards[0], std::span{first}, {.known = 0});
  auto changed = four.batch.pull(four.shards[2], std::span{second}, {.known = 0});
  four.batch.send();
  unchanged.wait();
  changed.wait();
  CHECK(unchanged.result() == 0);
  CHECK(changed.result() == 1);
  CHECK(first == Floats{-1, -1});
  CHECK(second == Floats{4, 4});
}

TEST_CASE("a server's failure fails only its own parts, on every wait") {
  Four four;
  Floats values(2);
  std::vector<Batch::Pull> pulls;
  for (std::size_t shard = 0; shard < 3; ++shard)
    pulls.push_back(four.batch.pull(four.shards[shard], std::span{values}));
  auto push = four.batch.push_uniform(four.shards[0], dist::sum, 1.0F);
  four.servers[0].stop();
  four.batch.send();
  CHECK_THROWS_AS(pulls[0].wait(), dist::ServerUnavailable);
  CHECK_NOTHROW(pulls[1].wait());
  CHECK_THROWS_AS(pulls[2].wait(), dist::ServerUnavailable);
  CHECK_THROWS_AS(pulls[0].wait(), dist::ServerUnavailable);
  CHECK(pulls[0].is_done());
  CHECK_THROWS_AS(push.wait(), dist::ServerUnavailable);
}

TEST_CASE("an error in one part of a message leaves the other parts unapplied") {
  Four four;
  const Floats two{1, 1}, three{1, 1, 1};
  auto good = four.batch.push(four.shards[0], dist::sum, std::span{two});
  auto bad = four.batch.push(four.shards[2], dist::sum, std::span{three});
  four.batch.send();
  CHECK_THROWS_AS(good.wait(), dist::StoreError);
  CHECK_THROWS_AS(bad.wait(), dist::StoreError);
  Floats values(2);
  auto pull = four.batch.pull(four.shards[0], std::span{values});
  four.batch.send();
  pull.wait();
  CHECK(values == Floats{1, 1});
  CHECK_THROWS_AS((void)four.batch.pull(ShardAddress{2, 0, 1, "nowhere"}, std::span{values}), dist::InvalidArgument);
}

TEST_CASE("a message whose reply was lost is applied once, with the same results") {
  using dist_test::Flaky;
  dist::server::ShardServer store;
  const dist::net::Endpoint place{"flaky", "1"};
  const Local::Server server{place, {}, dist::server::store_methods<Local::Exchange>(store)};
  dist::server::Clients<Flaky> clients{
      {place},
      {.channel = {.reconnect = dist::net::Milliseconds{1}}, .shared_memory = dist::server::SharedMemoryAccess::none}};
  const auto client = clients.of(0, store.incarnation());
  for (const dist::server::ShardId id : {1U, 2U}) client->create<float>({id, "w", 2, 1, 0}, 0);
  const Floats ones{1, 1};
  client->push(2, dist::sum, std::span{ones});

  const dist::server::Batch<Flaky> batch{clients};
  auto taken = batch.push({0, store.incarnation(), 1}, dist::sum, std::span{ones});
  auto refused =
      batch.push({0, store.incarnation(), 2}, dist::sum, std::span{ones}, {.version = 0, .max_staleness = 0});
  Flaky::fail(place, "store.push", {.calls = 2});
  batch.send();
  taken.wait();
  refused.wait();
  CHECK(taken.result() == Pushed{1, 0, true});
  CHECK(refused.result() == Pushed{1, 1, false});
  Floats first(2), second(2);
  client->pull(1, std::span{first});
  client->pull(2, std::span{second});
  CHECK(first == ones);
  CHECK(second == ones);
}

TEST_CASE("waiting for unsent parts throws, and they are never sent") {
  Four four;
  {
    auto push = four.batch.push_uniform(four.shards[0], dist::sum, 1.0F);
    CHECK(
        support::what_throws<dist::InvalidArgument>([&] { push.wait(); }) ==
        "A batch has no reply to wait for (it was not sent). Call its send() before waiting for its pulls or pushes.");
    const Batch other = std::exchange(four.batch, Batch{four.servers.clients<Local>()});
  }
  four.batch.send();
  CHECK(four.servers[0].pushes() == 0);
}

TEST_CASE("kept memory lives as long as a part") {
  Four four;
  const auto memory = std::make_shared<Floats>(2);
  std::optional<Batch::Pull> pull = four.batch.pull(four.shards[3], std::span{*memory});
  pull->keep(memory);
  CHECK(memory.use_count() == 2);
  four.batch.send();
  pull->wait();
  CHECK(*memory == Floats{4, 4});
  pull.reset();
  CHECK(memory.use_count() == 1);
}
