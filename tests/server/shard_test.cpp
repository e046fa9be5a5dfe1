#include <dist/server/shard.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/processes.hpp"
#include "support/what_throws.hpp"

namespace {

using dist::io::ElementType;
using dist::server::Problem;
using dist::server::Reach;
using dist::server::Shard;
using dist::server::ShardSpec;
using dist::server::Staleness;
using dist::server::StoreMemory;

/// Runs `work` in another process until the process ends, and returns its id.
template <class Work>
pid_t in_another_process(Work&& work) {
  support::Processes other(1, [&](std::size_t) {
    work();
    return 0;
  });
  const pid_t number = other[0];
  CHECK(other.wait() == std::vector<int>{0});
  return number;
}

std::shared_ptr<StoreMemory> memory() { return std::make_shared<StoreMemory>(Reach::process, 1); }

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

TEST_CASE("a new shard has zeros and its sizes") {
  Shard shard{memory(), {7, "w/part_1", 3, 4, 12}, ElementType::f64};
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

TEST_CASE("slots are created once, in addition to the weights") {
  Shard shard{memory(), {1, "w", 2, 1, 0}, ElementType::f32};
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

TEST_CASE("slots requested together are created all or none") {
  Shard shard{memory(), {1, "w", 2, 1, 0}, ElementType::f32};
  const auto second_fails = [](std::size_t slot, std::span<std::byte>) {
    if (slot == 1) throw dist::StoreError(Problem::no_memory, "There is no memory", "it is a test", "");
  };
  CHECK(problem_of([&] { shard.lock().ensure_slots(0, 2, second_fails); }) == Problem::no_memory);
  CHECK(shard.slots() == 0);
}

TEST_CASE("versions count pushes, and staleness their delay") {
  Shard shard{memory(), {1, "w", 2, 1, 0}, ElementType::f32};
  shard.lock().count_push(0, true);
  shard.lock().count_push(0, false);
  shard.lock().count_push(2, true);
  shard.lock().count_refusal();
  shard.lock().count_push(1, true);
  CHECK(shard.lock().version() == 4);
  CHECK(shard.lock().staleness() == Staleness{3, 3, 2, 1});
}

TEST_CASE("more memory than can be counted is rejected with the shard's name") {
  const std::uint64_t half = std::uint64_t{1} << 32;
  CHECK(problem_of([&] { Shard(memory(), {1, "w", half, half, 0}, ElementType::u8); }) == Problem::no_memory);
  CHECK(problem_of([&] { Shard(memory(), {1, "w", half, half / 2, 0}, ElementType::f64); }) == Problem::no_memory);
}

TEST_CASE("more memory than exists is rejected with the shard's name") {
  const std::uint64_t half = std::uint64_t{1} << 32;
  CHECK(problem_of([&] { Shard(memory(), {1, "w", half, half / 4, 0}, ElementType::u8); }) == Problem::no_memory);
}

TEST_CASE("a process finds a shard of another one, changes it, and detects that it was dropped") {
  const auto shared = std::make_shared<StoreMemory>(Reach::machine, 7);
  CHECK(StoreMemory::attach(shared->place(), 8) == nullptr);  // of another store
  CHECK(StoreMemory::attach(memory()->place(), 1) == nullptr);
  auto shard = std::make_unique<Shard>(shared, ShardSpec{1, "w", 2, 1, 0}, ElementType::f32);
  const auto attached = StoreMemory::attach(shared->place(), 7);
  REQUIRE(attached != nullptr);
  Shard seen{attached, shard->found()};
  in_another_process([&] {
    Shard::Locked locked = seen.lock();
    locked.change([&] { locked.memory().weights_as<float>()[1] = 5; });
    locked.count_push(0, true);
  });
  CHECK(shard->lock().memory().weights_as<float>()[1] == 5.0f);
  CHECK(shard->version() == 1);
  CHECK(shard->lock().staleness() == Staleness{1, 0, 0, 0});
  shard->lock().ensure_slots(0, 1, [](std::size_t, std::span<std::byte>) {});
  CHECK(seen.slots() == 1);
  CHECK(seen.lock().array(1).size() == 8);
  shard.reset();
  const Shard next{shared, ShardSpec{1, "w", 2, 1, 0}, ElementType::f32};  // at the same place
  CHECK(next.found().state == seen.found().state);
  CHECK(problem_of([&] { static_cast<void>(seen.lock()); }) == Problem::unknown_shard);
}

TEST_CASE("a process that ends with a locked shard blocks no one, and is named if it was changing the shard") {
  const auto shared = std::make_shared<StoreMemory>(Reach::machine, 7);
  Shard shard{shared, {1, "w", 2, 1, 0}, ElementType::f32};
  Shard seen{StoreMemory::attach(shared->place(), 7), shard.found()};
  in_another_process([&] {
    const Shard::Locked locked = seen.lock();
    _exit(0);
  });
  CHECK_NOTHROW(static_cast<void>(shard.lock()));
  const pid_t child = in_another_process([&] {
    // Like a client that attaches after its start, so that its own process id is recorded.
    Shard own{StoreMemory::attach(shared->place(), 7), shard.found()};
    const Shard::Locked locked = own.lock();
    locked.change([] { _exit(0); });
  });
  const std::string said = support::what_throws<dist::StoreError>([&] { static_cast<void>(shard.lock()); });
  CHECK(said == "Shard 'w' (number 1) is partly updated (process " + std::to_string(child) +
                    " ended during an update). Restart the job from its last checkpoint.");
  CHECK(problem_of([&] { static_cast<void>(seen.lock()); }) == Problem::half_changed);
}

TEST_CASE("a read without the lock returns one version, or nothing") {
  const auto shared = std::make_shared<StoreMemory>(Reach::machine, 7);
  auto shard = std::make_unique<Shard>(shared, ShardSpec{1, "w", 2, 1, 0}, ElementType::f32);
  Shard seen{StoreMemory::attach(shared->place(), 7, true), shard->found()};
  float to[2]{};
  const auto copy = [&](std::span<const std::byte> from) { std::memcpy(to, from.data(), sizeof to); };
  const auto push = [&] {
    Shard::Locked locked = shard->lock();
    locked.change([&] {
      for (float& each : locked.memory().weights_as<float>()) ++each;
      locked.count_push(0, true);
    });
  };
  CHECK(seen.read(0, copy) == 0);
  push();
  CHECK(seen.read(0, copy) == 1);
  CHECK(to[1] == 1);
  shard->lock().ensure_slots(0, 1, [](std::size_t, std::span<std::byte> memory) { memory[0] = std::byte{1}; });
  CHECK(seen.read(1, [](std::span<const std::byte> from) { CHECK(from[0] == std::byte{1}); }) == 1);

  // A change begins, or was completed, during the read.
  {
    const Shard::Locked locked = shard->lock();
    CHECK(seen.read(0, copy) == 1);
    locked.change([&] { CHECK_FALSE(seen.read(0, copy)); });
  }
  CHECK_FALSE(seen.read(0, [&](auto) { push(); }));
  CHECK(seen.read(0, copy) == 2);

  CHECK_FALSE(seen.read(0, [&](auto) { shard.reset(); }));
  CHECK(problem_of([&] { static_cast<void>(seen.read(0, copy)); }) == Problem::unknown_shard);
  const Shard next{shared, ShardSpec{1, "w", 2, 1, 0}, ElementType::f32};  // at the same place
  CHECK(next.found().state == seen.found().state);
  CHECK(problem_of([&] { static_cast<void>(seen.read(0, copy)); }) == Problem::unknown_shard);
  CHECK(next.read(0, copy) == 0);
}

TEST_CASE("a process that stops or ends during a read without the lock blocks no one") {
  const auto shared = std::make_shared<StoreMemory>(Reach::machine, 7);
  Shard shard{shared, {1, "w", 2, 1, 0}, ElementType::f32};
  support::Processes other(1, [&](std::size_t) {
    const Shard own{StoreMemory::attach(shared->place(), 7, true), shard.found()};
    static_cast<void>(own.read(0, [](auto) { raise(SIGSTOP); }));
    return 0;
  });
  int status = 0;
  REQUIRE(waitpid(other[0], &status, WUNTRACED) == other[0]);
  REQUIRE(WIFSTOPPED(status));
  CHECK_NOTHROW(static_cast<void>(shard.lock(std::chrono::milliseconds{2})));
  kill(other[0], SIGKILL);
  static_cast<void>(other.wait());
  CHECK_NOTHROW(static_cast<void>(shard.lock(std::chrono::milliseconds{2})));
}

TEST_CASE("a process that locks a shard for too long is named") {
  Shard shard{memory(), {1, "w", 2, 1, 0}, ElementType::f32};
  const Shard::Locked locked = shard.lock();
  CHECK(support::what_throws<dist::StoreError>([&] { static_cast<void>(shard.lock(std::chrono::milliseconds{2})); }) ==
        "Shard 'w' (number 1) is in use (process " + std::to_string(getpid()) +
            " has locked it for 2 ms). Check what that process does: a debugger may have stopped it.");
}

TEST_CASE("a process stopped by a signal with a locked shard is named long before the time limit") {
  const auto shared = std::make_shared<StoreMemory>(Reach::machine, 7);
  Shard shard{shared, {1, "w", 2, 1, 0}, ElementType::f32};
  support::Processes other(1, [&](std::size_t) {
    Shard own{StoreMemory::attach(shared->place(), 7), shard.found()};
    const Shard::Locked locked = own.lock();
    raise(SIGSTOP);
    return 0;
  });
  int status = 0;
  REQUIRE(waitpid(other[0], &status, WUNTRACED) == other[0]);
  REQUIRE(WIFSTOPPED(status));
  const auto begin = std::chrono::steady_clock::now();
  CHECK(support::what_throws<dist::StoreError>([&] { static_cast<void>(shard.lock()); }) ==
        "Shard 'w' (number 1) is in use (process " + std::to_string(other[0]) +
            " has locked it, and a signal has stopped that process). Let that process continue, or restart the job "
            "from its last checkpoint.");
  CHECK(std::chrono::steady_clock::now() - begin < Shard::longest_wait);
  kill(other[0], SIGCONT);
  CHECK(other.wait() == std::vector<int>{0});
  CHECK_NOTHROW(static_cast<void>(shard.lock()));
}
