#include <dist/server/shard_spec.hpp>

#include <cstdint>

#include <doctest/doctest.h>

#include <dist/server/archive.hpp>

using dist::server::SharedShard;
using dist::server::StoreMemoryHandle;

TEST_CASE("locations of stores and shards can be archived") {
  const auto place =
      dist::from_bytes<StoreMemoryHandle>(dist::to_bytes(StoreMemoryHandle{7, 4711, 12, std::uint64_t{1} << 40}));
  CHECK(place.process_space == 7);
  CHECK(place.process == 4711);
  CHECK(place.descriptor == 12);
  CHECK(place.bytes == std::uint64_t{1} << 40);
  const auto found = dist::from_bytes<SharedShard>(
      dist::to_bytes(SharedShard{{3, "w/part_1", 5, 2, 10}, dist::io::ElementType::f64, 4096, 9}));
  CHECK(to_string(found.spec) == "Shard 'w/part_1' (number 3)");
  CHECK(found.spec.rows == 5);
  CHECK(found.type == dist::io::ElementType::f64);
  CHECK(found.state == 4096);
  CHECK(found.serial == 9);
}

TEST_CASE("a default handle names memory that no other process can map") {
  CHECK(StoreMemoryHandle{}.descriptor == -1);
}
