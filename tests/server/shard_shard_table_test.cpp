#include <dist/server/shard.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "support/what_throws.hpp"

namespace {

using dist::io::ElementType;
using dist::server::Reach;
using dist::server::Shard;
using dist::server::ShardId;
using dist::server::ShardTable;
using dist::server::SharedShard;
using dist::server::StoreMemory;

std::shared_ptr<Shard> shard(const ShardTable& table, ShardId id) {
  return std::make_shared<Shard>(table.memory(), dist::server::ShardSpec{id, "w", 2, 3, 0}, ElementType::f32);
}

}  // namespace

TEST_CASE("a store finds its shards by id") {
  ShardTable table{std::make_shared<StoreMemory>(Reach::process, 7)};
  CHECK(table.find(1) == nullptr);
  const auto second = shard(table, 2);
  table.add(second);
  table.add(shard(table, 1));
  CHECK(table.find(2) == second);
  CHECK(table.require(2) == second);
  CHECK(support::what_throws<dist::StoreError>([&] { table.add(shard(table, 2)); }) ==
        "Shard 'w' (number 2) cannot be created (the server already has a shard with this number). Drop that shard "
        "first, or take it over.");
  const std::vector<dist::server::ShardInfo> all = table.list();
  REQUIRE(all.size() == 2);
  CHECK(all[0].spec.id == 1);
  CHECK(all[1].spec.id == 2);
  table.erase({2, 3});
  CHECK(table.find(2) == nullptr);
  CHECK(support::what_throws<dist::StoreError>([&] {
          static_cast<void>(table.require(2));
        }).starts_with("This server has no shard 2 (it was not created, or it was dropped)."));
}

TEST_CASE("another process requests a shard once, and again after the store has dropped it") {
  ShardTable own{std::make_shared<StoreMemory>(Reach::machine, 7)};
  own.add(shard(own, 1));
  int asked = 0;
  ShardTable seen{StoreMemory::attach(own.memory()->place(), 7), [&](ShardId id) {
                    ++asked;
                    return own.require(id)->found();
                  }};
  const auto first = seen.require(1);
  CHECK(seen.require(1) == first);
  CHECK(asked == 1);
  own.erase({1});
  CHECK(first->is_gone());
  CHECK(seen.find(1) == nullptr);
  CHECK_THROWS_AS(static_cast<void>(seen.require(1)), dist::StoreError);
  own.add(shard(own, 1));
  CHECK_FALSE(seen.require(1)->is_gone());
  CHECK(asked == 3);
  own.erase({1});
  own.add(shard(own, 2));
  CHECK_FALSE(seen.require(2)->is_gone());
  CHECK(seen.list().size() == 1);  // the dropped one was removed
}

TEST_CASE("the table of a store is found in its process as long as the store exists") {
  auto table = std::make_shared<ShardTable>(std::make_shared<StoreMemory>(Reach::process, 7));
  ShardTable::publish(7, table);
  CHECK(ShardTable::of_store(7) == table);
  CHECK(ShardTable::of_store(8) == nullptr);
  table.reset();
  CHECK(ShardTable::of_store(7) == nullptr);
}
