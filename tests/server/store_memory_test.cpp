#include <dist/server/store_memory.hpp>

#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include "support/processes.hpp"

using dist::server::Reach;
using dist::server::StoreMemory;
using dist::server::StoreMemoryHandle;

TEST_CASE("another process maps the memory of a store, and notices its end") {
  StoreMemory memory{Reach::machine, 7};
  const std::uint64_t offset = memory.allocate(100);
  std::memcpy(memory.at(offset), "there", 5);
  CHECK(memory.process() == getpid());
  support::Processes other(1, [&](std::size_t) {
    const auto attached = StoreMemory::attach(memory.place(), 7);
    if (attached == nullptr || attached->at(0) == memory.at(0)) return 1;
    if (attached->process() != getpid()) return 2;
    if (!attached->is_open() || std::memcmp(attached->at(offset), "there", 5) != 0) return 3;
    std::memcpy(attached->at(offset), "again", 5);
    return 0;
  });
  CHECK(other.wait() == std::vector<int>{0});
  CHECK(std::memcmp(memory.at(offset), "again", 5) == 0);
  const auto attached = StoreMemory::attach(memory.place(), 7);
  REQUIRE(attached != nullptr);
  memory.close();
  CHECK_FALSE(attached->is_open());
  CHECK(StoreMemory::attach(memory.place(), 7) == nullptr);
}

TEST_CASE("attach rejects memory of another store, of a single process or of another machine") {
  const StoreMemory shared{Reach::machine, 7}, own{Reach::process, 8};
  CHECK(StoreMemory::attach(shared.place(), 8) == nullptr);
  CHECK(own.is_open());
  CHECK(own.place().descriptor == -1);
  CHECK(StoreMemory::attach(own.place(), 8) == nullptr);
  StoreMemoryHandle place = shared.place();
  ++place.process_space;  // such as another machine
  CHECK(StoreMemory::attach(place, 7) == nullptr);
  place = shared.place();
  place.bytes = 0;
  CHECK(StoreMemory::attach(place, 7) == nullptr);
}

TEST_CASE("the memory of a ShardState is reused only for other states") {
  StoreMemory memory{Reach::process, 7};
  std::set<std::uint64_t> states;
  for (int i = 0; i < 20; ++i) states.insert(memory.take_state());
  CHECK(states.size() == 20);
  const std::uint64_t one = *states.begin();
  memory.state_at(one).serial = memory.next_serial();
  memory.give_back_state(one);
  CHECK(memory.take_state() == one);
  CHECK(memory.state_at(one).serial == 1);  // for processes with a reference to the shard
  CHECK(memory.next_serial() == 2);
}
