#include <dist/device/shared_memory.hpp>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dist/device/arena.hpp>

#include <doctest/doctest.h>
#include "support/processes.hpp"
#include "support/what_throws.hpp"

namespace {

constexpr std::size_t bytes = std::size_t{1} << 20;

TEST_CASE("processes see each other's writes") {
  const dist::SharedMemory memory{bytes};
  CHECK(memory.size() == bytes);
  CHECK(memory.data()[bytes - 1] == std::byte{0});
  std::memcpy(memory.data() + 5, "there", 5);
  support::Processes other(1, [&](std::size_t) {
    const auto attached = dist::SharedMemory::attach(memory.name());
    if (!attached || attached->size() != bytes) return 1;
    if (attached->data() == memory.data() || std::memcmp(attached->data() + 5, "there", 5) != 0) return 2;
    std::memcpy(attached->data() + 5, "again", 5);
    return 0;
  });
  CHECK(other.wait() == std::vector<int>{0});
  CHECK(std::memcmp(memory.data() + 5, "again", 5) == 0);
}

TEST_CASE("memory attached read-only cannot be written") {
  const dist::SharedMemory memory{bytes};
  std::memcpy(memory.data(), "there", 5);
  const auto attached = dist::SharedMemory::attach(memory.name(), true);
  REQUIRE(attached);
  CHECK(std::memcmp(attached->data(), "there", 5) == 0);
  std::memcpy(memory.data(), "again", 5);
  CHECK(std::memcmp(attached->data(), "again", 5) == 0);
  CHECK(mprotect(attached->data(), bytes, PROT_READ | PROT_WRITE) != 0);
}

TEST_CASE("attached memory outlives its owner") {
  std::optional<dist::SharedMemory> memory{std::in_place, bytes};
  memory->data()[7] = std::byte{42};
  const auto attached = dist::SharedMemory::attach(memory->name());
  REQUIRE(attached);
  memory.reset();
  CHECK(attached->data()[7] == std::byte{42});
}

TEST_CASE("unknown memory cannot be attached") {
  const dist::SharedMemory memory{bytes};
  dist::SharedMemory::Name name = memory.name();
  name.descriptor = 1'000'000;
  CHECK_FALSE(dist::SharedMemory::attach(name));
  name = memory.name();
  name.process = std::numeric_limits<int>::max();
  CHECK_FALSE(dist::SharedMemory::attach(name));
}

TEST_CASE("memory is movable") {
  dist::SharedMemory memory{bytes};
  const std::byte* const place = memory.data();
  dist::SharedMemory other = std::move(memory);
  CHECK(other.data() == place);
  dist::SharedMemory third{4096};
  third = std::move(other);
  CHECK(third.data() == place);
}

TEST_CASE("more memory than the address space is rejected") {
  CHECK_THROWS_AS(dist::SharedMemory{std::numeric_limits<std::size_t>::max() / 2}, dist::OutOfMemory);
}

TEST_CASE("more memory than the file size limit is rejected without a signal") {
  support::Processes limited(1, [](std::size_t) {
    const rlimit limit{bytes, bytes};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    if (dist::SharedMemory{bytes}.size() != bytes) return 2;
    const std::string message =
        support::what_throws<dist::OutOfMemory>([] { const dist::SharedMemory memory{bytes + 1}; });
    return message.find("it is too large: File too large") != std::string::npos ? 0 : 3;
  });
  CHECK(limited.wait() == std::vector<int>{0});
}

TEST_CASE("an arena in shared memory returns zeroed slices after reuse") {
  dist::SharedMemory memory{bytes};
  dist::Arena arena{2, std::span{memory.data(), memory.size()}};
  const std::size_t first = arena.allocate(100);
  CHECK(arena.at(0, first) >= memory.data());
  CHECK(arena.at(1, first) + 100 <= memory.data() + memory.size());
  std::memset(arena.at(0, first), 1, 100);
  std::memset(arena.at(1, first), 1, 100);
  arena.release(first, 100);
  const std::size_t again = arena.allocate(100);
  for (std::size_t replica = 0; replica < 2; ++replica)
    for (std::size_t i = 0; i < 100; ++i) CHECK(arena.at(replica, again)[i] == std::byte{0});
  CHECK_THROWS_AS(static_cast<void>(arena.allocate(bytes)), dist::OutOfMemory);
}

}  // namespace
