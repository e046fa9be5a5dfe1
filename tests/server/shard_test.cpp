#include <dist/server/shard.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>

#include <doctest/doctest.h>

#include "support/sanitizers.hpp"

namespace {

using dist::io::ElementType;
using dist::server::Problem;
using dist::server::Shard;
using dist::server::ShardSpec;
using dist::server::Staleness;

template <class Fn>
Problem problem_of(Fn&& fn) {
  try {
    fn();
  } catch (const dist::StoreError& error) {
    return error.problem();
  }
  FAIL("nothing was thrown");
  return Problem::malformed;
}

}  // namespace

TEST_CASE("a shard begins with zeros, and knows its sizes") {
  Shard shard{{7, "w/part_1", 3, 4, 12}, ElementType::f64};
  CHECK(shard.elements() == 12);
  CHECK(shard.bytes() == 96);
  CHECK(shard.row_bytes() == 32);
  const Shard::Locked locked = shard.lock();
  CHECK(locked.array(0).size() == 96);
  CHECK(std::ranges::all_of(locked.array(0), [](std::byte byte) { return byte == std::byte{0}; }));
  const dist::server::ShardMemory memory = locked.memory();
  CHECK(memory.weights_as<double>().size() == 12);
  CHECK(memory.row_size == 4);
}

TEST_CASE("slots are made once, and lie beside the weights") {
  Shard shard{{1, "w", 2, 1, 0}, ElementType::f32};
  const auto ones = [](std::size_t slot, std::span<std::byte> memory) {
    const float values[2] = {static_cast<float>(slot) + 1, 1};
    std::memcpy(memory.data(), values, sizeof values);
  };
  shard.lock().ensure_slots(0, 2, ones);
  CHECK(shard.slots() == 2);
  {
    const Shard::Locked locked = shard.lock();
    const auto memory = locked.memory(1, 1);
    REQUIRE(memory.slots.size() == 1);
    CHECK(*reinterpret_cast<const float*>(memory.slots[0]) == 2.0f);
    *reinterpret_cast<float*>(memory.slots[0]) = 5;
    CHECK(memory.slots[0] == locked.array(2).data());
  }
  shard.lock().ensure_slots(0, 2, ones);
  CHECK(*reinterpret_cast<const float*>(shard.lock().array(2).data()) == 5.0f);
  CHECK(problem_of([&] { shard.lock().ensure_slots(3, 1, ones); }) == Problem::wrong_slot);
  CHECK(shard.slots() == 2);
}

TEST_CASE("of slots that are asked for together, all are made or none") {
  Shard shard{{1, "w", 2, 1, 0}, ElementType::f32};
  const auto second_fails = [](std::size_t slot, std::span<std::byte>) {
    if (slot == 1) throw dist::StoreError(Problem::no_memory, "There is no memory", "it is a test", "");
  };
  CHECK(problem_of([&] { shard.lock().ensure_slots(0, 2, second_fails); }) == Problem::no_memory);
  CHECK(shard.slots() == 0);
}

TEST_CASE("versions count pushes, and staleness how far they were behind") {
  Shard shard{{1, "w", 2, 1, 0}, ElementType::f32};
  shard.lock().count_push(0, true);
  shard.lock().count_push(0, false);
  shard.lock().count_push(2, true);
  shard.lock().count_refusal();
  shard.lock().count_push(1, true);
  CHECK(shard.lock().version() == 4);
  CHECK(shard.lock().staleness() == Staleness{3, 3, 2, 1});
}

TEST_CASE("more memory than can be counted is refused by the shard's name") {
  const std::uint64_t half = std::uint64_t{1} << 32;
  CHECK(problem_of([&] { Shard({1, "w", half, half, 0}, ElementType::u8); }) == Problem::no_memory);
  CHECK(problem_of([&] { Shard({1, "w", half, half / 2, 0}, ElementType::f64); }) == Problem::no_memory);
}

#ifndef DIST_TEST_SANITIZER  // which ends a program that asks for so much
TEST_CASE("more memory than there is is refused by the shard's name") {
  const std::uint64_t half = std::uint64_t{1} << 32;
  CHECK(problem_of([&] { Shard({1, "w", half, half / 4, 0}, ElementType::u8); }) == Problem::no_memory);
}
#endif
