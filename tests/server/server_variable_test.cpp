#include <dist/server/server_variable.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <dist/core/reduce_op.hpp>
#include <dist/rpc/local_transport.hpp>
#include <dist/server/archive.hpp>
#include <dist/variable/embedding.hpp>
#include <server/counted_servers.hpp>

using dist::Local;
using dist::Shape;
using dist::Tensor;
using Shard = dist::ServerShard<float, Local>;
using Variable = dist::ServerVariable<float, Local>;

// See also the operations in tests/strategy/parameter_server_test.cpp.

namespace {

std::vector<Shard> two_shards(const Shape& second) {
  std::vector<Shard> shards;
  shards.emplace_back(Shard::Address{0, 7, 1, "table/part_0"}, Shape{3, 2});
  shards.emplace_back(Shard::Address{1, 8, 2, "table/part_1"}, second);
  return shards;
}
Variable sent(const std::vector<std::byte>& bytes) {
  const std::vector<dist::rpc::Chunk> pieces{bytes};
  return dist::from_bytes<Variable>(pieces, "A test");
}

}  // namespace

TEST_CASE("an operation sends one message to each server, however many shards it has") {
  dist_test::CountedServers servers{2};
  std::vector<Shard> shards;
  for (std::uint64_t i = 0; i < 6; ++i) shards.emplace_back(servers.create(i % 2, i, 1, 0), Shape{1});
  Variable variable{std::move(shards), "six"};
  const auto messages = [&](auto&& operation) {
    operation();
    std::vector<int> counted;
    for (std::size_t server = 0; server < 2; ++server) {
      counted.push_back(servers[server].pulls());
      counted.push_back(servers[server].pushes());
    }
    return counted;
  };
  const std::vector<int> pulls{1, 0, 1, 0}, pushes{0, 1, 0, 1};
  const Tensor<float> values{{6}, {0, 1, 2, 3, 4, 5}};
  const dist::IndexedSlices<float> slices{{5, 2, 5, 4}, {{4}, {1, 2, 3, 4}}, {6}};
  CHECK(messages([&] { variable.assign(servers, 7); }) == pushes);
  CHECK(messages([&] { variable.assign(servers, dist::same(7.0F)); }) == pushes);
  CHECK(messages([&] { variable.assign_add(servers, values); }) == pushes);
  CHECK(messages([&] { variable.scatter_sub(servers, slices); }) == pushes);
  CHECK(messages([&] { variable.apply(servers, dist::sum, values.view()); }) == pushes);
  CHECK(messages([&] { variable.apply(servers, dist::max, slices.view()); }) == pushes);
  CHECK(messages([&] { CHECK(variable.read(servers) == Tensor<float>{{6}, {7, 9, 9, 13, 11, 13}}); }) == pulls);
  CHECK(messages([&] {
          CHECK(variable.gather(servers, std::vector<std::int64_t>{5, 0}) == Tensor<float>{{2}, {13, 7}});
        }) == pulls);
  CHECK(messages([&] { (void)variable.pull(servers); }) == pulls);
}

TEST_CASE("one value for all elements is sent once") {
  dist_test::CountedServers servers{1};
  std::vector<Shard> shards;
  for (std::uint64_t i = 0; i < 2; ++i) shards.emplace_back(servers.create(0, i, 1000, 0), Shape{1000});
  Variable variable{std::move(shards), "large"};
  const auto bytes = [&](auto&& write) {
    const std::uint64_t before = servers[0].bytes_pushed();
    write();
    return servers[0].bytes_pushed() - before;
  };
  CHECK(bytes([&] { variable.assign(servers, 2); }) < 500);
  CHECK(bytes([&] { variable.assign_add(servers, dist::same(3)); }) < 500);
  CHECK(variable.read(servers)[1999] == 5);
  CHECK(bytes([&] { variable.assign(servers, Tensor<float>{Shape{2000}}); }) > 8000);
}

TEST_CASE("an embedding lookup sends one message to each server, with each row once (spec K08)") {
  dist_test::CountedServers servers{2};
  std::vector<Shard> shards;
  for (std::uint64_t i = 0; i < 2; ++i) shards.emplace_back(servers.create(i, i, 2, static_cast<float>(i)), Shape{2});
  Variable table{std::move(shards), "table"};
  table.scatter_add(servers, dist::IndexedSlices<float>{{1, 3}, {{2}, {4, 5}}, {4}});
  std::vector<std::int64_t> ids(1000, 3);
  ids[1] = 1;
  ids[2] = 2;
  const auto found = dist::embedding_lookup(servers, table, ids);
  REQUIRE(found.values().shape() == Shape{1000});
  CHECK(std::vector<float>(found.values().data(), found.values().data() + 4) == std::vector<float>{6, 4, 1, 6});
  for (std::size_t server = 0; server < 2; ++server) {
    CHECK(servers[server].pulls() == 1);
    CHECK(servers[server].bytes_of_pulls() < 500);
  }
}

TEST_CASE("refresh pulls only changed shards") {
  dist_test::CountedServers servers{2};
  std::vector<Shard> shards;
  for (std::uint64_t i = 0; i < 3; ++i) shards.emplace_back(servers.create(i % 2, i, 2, 1), Shape{2});
  Variable variable{std::move(shards), "table"};
  dist::Pulled<float> pulled = variable.pull(servers);
  CHECK(pulled.values == Tensor<float>{{6}, {1, 1, 1, 1, 1, 1}});
  CHECK(pulled.versions == std::vector<std::uint64_t>{0, 0, 0});
  CHECK(variable.refresh(servers, pulled) == 0);
  variable.scatter_add(servers, dist::IndexedSlices<float>{{3}, {{1}, {4}}, {6}});
  pulled.values[0] = 9;  // unchanged, like its shard
  CHECK(variable.refresh(servers, pulled) == 1);
  CHECK(pulled.values == Tensor<float>{{6}, {9, 1, 1, 5, 1, 1}});
  CHECK(pulled.versions == std::vector<std::uint64_t>{0, 1, 0});
  pulled.versions.pop_back();
  CHECK_THROWS_AS(variable.refresh(servers, pulled), dist::InvalidArgument);
  dist::Pulled<float> other{Tensor<float>{Shape{2}}, {0, 0, 0}};
  CHECK_THROWS_AS(variable.refresh(servers, other), dist::ShapeMismatch);
}

TEST_CASE("a worker whose push is too stale pulls again") {
  dist_test::CountedServers servers{2};
  std::vector<Shard> shards;
  for (std::uint64_t i = 0; i < 2; ++i) shards.emplace_back(servers.create(i, i, 1, 0), Shape{1});
  Variable variable{std::move(shards), "pair"};
  dist::Pulled<float> pulled = variable.pull(servers);
  variable.scatter_add(servers, dist::IndexedSlices<float>{{1}, {{1}, {5}}, {2}});
  const auto push = [&] {
    return variable.apply(servers, dist::sum, Tensor<float>{{2}, {1, 1}}.view(),
                          {.versions = pulled.versions, .max_staleness = 0});
  };
  using dist::server::Pushed;
  CHECK(push() == std::vector<Pushed>{{1, 0, true}, {1, 1, false}});
  CHECK(variable.refresh(servers, pulled) == 2);
  CHECK(push() == std::vector<Pushed>{{2, 0, true}, {2, 0, true}});
  CHECK(variable.read(servers) == Tensor<float>{{2}, {2, 6}});
  CHECK(variable.staleness(servers) == dist::server::Staleness{.pushes = 3, .refused = 1});
  CHECK_THROWS_AS(variable.apply(servers, dist::sum, pulled.values.view(), {.max_staleness = 1}),
                  dist::InvalidArgument);
}

TEST_CASE("a variable is archived as the addresses of its shards") {
  const Variable variable = sent(dist::to_bytes(Variable{two_shards({2, 2}), "table"}));
  CHECK(variable.name() == "table");
  CHECK(variable.shape() == Shape{5, 2});
  REQUIRE(variable.shards().size() == 2);
  CHECK(variable.shards()[1].place().server == 1);
  CHECK(variable.shards()[1].place().incarnation == 8);
}

TEST_CASE("bytes of inconsistent shards are rejected") {
  dist::ArchiveWriter archive;
  archive.put(std::string{"table"}).put(std::uint32_t{2});
  for (const Shard& shard : two_shards({2, 9})) archive.put(shard);
  CHECK_THROWS_WITH_AS((void)sent(archive.take()), doctest::Contains("do not fit together"), dist::ArchiveError);
  CHECK_THROWS_AS((void)sent(dist::ArchiveWriter{}.put(std::string{"table"}).put(std::uint32_t{0}).take()),
                  dist::ArchiveError);
  CHECK_THROWS_AS((void)sent(dist::ArchiveWriter{}.put(std::string{"table"}).put(~std::uint32_t{0}).take()),
                  dist::ArchiveError);
}

TEST_CASE("objects kept by a variable are destroyed with it") {
  const auto kept = std::make_shared<int>(1);
  {
    Variable variable{two_shards({2, 2}), "table", kept};
    const Variable moved = std::move(variable);
    CHECK(kept.use_count() == 2);
  }
  CHECK(kept.use_count() == 1);
}
