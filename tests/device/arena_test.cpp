#include <dist/device/arena.hpp>

#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/device/replica_threads.hpp>

#include <doctest/doctest.h>

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <support/processes.hpp>
#include <support/sanitizers.hpp>

using dist::Arena;

namespace {

std::size_t page() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

bool all_are(const std::byte* first, std::size_t count, std::byte value) {
  return std::all_of(first, first + count, [&](std::byte each) { return each == value; });
}

}  // namespace

TEST_CASE("slices are page-aligned, zero, and at the same offset in every region") {
  Arena arena(3);
  CHECK(arena.replicas() == 3);
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{100}, page(), page() + 1, 10 * page()}) {
    const std::size_t offset = arena.allocate(bytes);
    CHECK(offset % page() == 0);
    for (std::size_t replica = 0; replica < 3; ++replica) {
      std::byte* const slice = arena.at(replica, offset);
      CHECK(reinterpret_cast<std::uintptr_t>(slice) % page() == 0);
      CHECK(slice - arena.at(replica, 0) == static_cast<std::ptrdiff_t>(offset));
      CHECK(all_are(slice, bytes, std::byte{0}));
      std::fill_n(slice, bytes, static_cast<std::byte>(replica + 1));
    }
    for (std::size_t replica = 0; replica < 3; ++replica)
      CHECK(all_are(arena.at(replica, offset), bytes, static_cast<std::byte>(replica + 1)));
  }
}

TEST_CASE("slices do not overlap, even empty ones") {
  Arena arena(1, 64 * page());
  std::vector<std::size_t> offsets;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{0}, page(), 2 * page() - 1, std::size_t{1}})
    offsets.push_back(arena.allocate(bytes));
  CHECK(offsets[1] >= offsets[0] + page());
  CHECK(offsets[2] >= offsets[1] + page());
  CHECK(offsets[3] >= offsets[2] + page());
  CHECK(offsets[4] >= offsets[3] + 2 * page());
}

TEST_CASE("a reused slice is zero") {
  Arena arena(2, 4 * page());
  const std::size_t first = arena.allocate(4 * page());
  for (std::size_t replica = 0; replica < 2; ++replica)
    std::fill_n(arena.at(replica, first), 4 * page(), std::byte{0xAB});
  arena.release(first, 4 * page());
  const std::size_t second = arena.allocate(4 * page());
  CHECK(second == first);
  for (std::size_t replica = 0; replica < 2; ++replica)
    CHECK(all_are(arena.at(replica, second), 4 * page(), std::byte{0}));
}

TEST_CASE("a reused slice is zero even if the program has locked its memory") {
  const std::size_t size = 4 * page();
  const auto check = [&](Arena& arena) {
    const std::size_t first = arena.allocate(size);
    std::fill_n(arena.at(0, first), size, std::byte{0xAB});
    if (mlock(arena.at(0, first), size) != 0) {
      MESSAGE("skipped: the system locks no memory (ulimit -l)");
      return;
    }
    arena.release(first, size);
    const std::size_t second = arena.allocate(size);
    CHECK(second == first);
    CHECK(all_are(arena.at(0, second), size, std::byte{0}));
    munlock(arena.at(0, second), size);
  };
  Arena own(1, size);
  check(own);
  void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  {
    Arena shared(1, std::span{static_cast<std::byte*>(memory), size});
    check(shared);
  }
  munmap(memory, size);
}

TEST_CASE("releasing slices in any order merges them into one gap") {
  constexpr std::size_t slices = 5;
  Arena arena(2, 2 * slices * page());
  std::array<std::size_t, slices> order{0, 1, 2, 3, 4};
  std::size_t orders = 0;
  do {
    std::array<std::size_t, slices> offsets{};
    for (std::size_t& offset : offsets) offset = arena.allocate(2 * page() - 7);
    CHECK_THROWS_AS(arena.allocate(1), dist::OutOfMemory);
    for (const std::size_t slice : order) arena.release(offsets[slice], 2 * page() - 7);
    const std::size_t whole = arena.allocate(2 * slices * page());
    CHECK(whole == 0);
    arena.release(whole, 2 * slices * page());
    ++orders;
  } while (std::next_permutation(order.begin(), order.end()));
  CHECK(orders == 120);
}

TEST_CASE("releasing a slice does not change its neighbours") {
  Arena arena(1, 3 * page());
  const std::array<std::size_t, 3> offsets{arena.allocate(page()), arena.allocate(page()), arena.allocate(page())};
  std::fill_n(arena.at(0, offsets[0]), page(), std::byte{1});
  std::fill_n(arena.at(0, offsets[2]), page(), std::byte{3});
  arena.release(offsets[1], page());
  CHECK(all_are(arena.at(0, offsets[0]), page(), std::byte{1}));
  CHECK(all_are(arena.at(0, offsets[2]), page(), std::byte{3}));
  CHECK(arena.allocate(page()) == offsets[1]);
}

TEST_CASE("the error of a full arena names the requested size and the capacity") {
  Arena arena(1, 4 * page());
  static_cast<void>(arena.allocate(3 * page()));
  const std::string expected = dist::concat("The strategy's arena is full (", 2 * page(),
                                            " more bytes were requested, the arena holds ", 4 * page(),
                                            "). Free unused variables, raise any limits on virtual memory and file "
                                            "size (ulimit -v, -f), or run on a machine with more memory.");
  CHECK_THROWS_WITH_AS(arena.allocate(2 * page()), expected.c_str(), dist::OutOfMemory);
  CHECK(arena.allocate(page()) == 3 * page());
}

TEST_CASE("sizes that overflow when rounded up to a page are rejected") {
  Arena arena(1, 4 * page());
  CHECK_THROWS_AS(arena.allocate(std::numeric_limits<std::size_t>::max()), dist::OutOfMemory);
  CHECK_THROWS_AS(arena.allocate(std::numeric_limits<std::size_t>::max() - page() + 2), dist::OutOfMemory);
  CHECK(arena.allocate(4 * page()) == 0);
}

TEST_CASE("a capacity is rounded up to a page") {
  Arena arena(1, 1);
  CHECK(arena.allocate(page()) == 0);
  CHECK_THROWS_AS(arena.allocate(1), dist::OutOfMemory);
}

TEST_CASE("a capacity larger than the address space throws OutOfMemory") {
  CHECK_THROWS_AS(Arena(2, std::size_t{1} << 62), dist::OutOfMemory);
}

TEST_CASE("threads allocate and release concurrently") {
  constexpr std::size_t threads = 4;
  constexpr std::size_t rounds = 200;
  Arena arena(2, 64 * page());
  std::array<std::size_t, threads> broken{};
  std::vector<std::thread> workers;
  for (std::size_t id = 0; id < threads; ++id)
    workers.emplace_back([&, id] {
      const auto mark = static_cast<std::byte>(id + 1);
      for (std::size_t round = 0; round < rounds; ++round) {
        const std::size_t bytes = (1 + (round + id) % 5) * page();
        const std::size_t offset = arena.allocate(bytes);
        for (std::size_t replica = 0; replica < 2; ++replica) {
          if (!all_are(arena.at(replica, offset), bytes, std::byte{0})) ++broken[id];
          std::fill_n(arena.at(replica, offset), bytes, mark);
        }
        for (std::size_t replica = 0; replica < 2; ++replica)
          if (!all_are(arena.at(replica, offset), bytes, mark)) ++broken[id];
        arena.release(offset, bytes);
      }
    });
  for (std::thread& worker : workers) worker.join();
  for (const std::size_t count : broken) CHECK(count == 0);
  CHECK(arena.allocate(64 * page()) == 0);
}

TEST_CASE("the default capacity leaves addresses for the maximum number of replicas") {
  dist::Arena arena{dist::ReplicaThreads::most_replicas};
  const std::size_t offset = arena.allocate(1);
  CHECK(*arena.at(dist::ReplicaThreads::most_replicas - 1, offset) == std::byte{0});
}

#ifndef DIST_TEST_SANITIZER  // sanitizers need memory at any time
TEST_CASE("an arena respects a limit on virtual memory, and leaves room for the rest") {
  support::Processes process{1, [](std::size_t) {
                               const std::size_t limit = std::size_t{1} << 30;  // less than the memory of any machine
                               const rlimit both{limit, limit};
                               if (setrlimit(RLIMIT_AS, &both) != 0) return 1;
                               const std::size_t whole = dist::Arena::largest_reservation();
                               const std::size_t quarter = dist::Arena::largest_reservation(4);
                               if (whole > limit / 2 || whole < limit / 8) return 2;
                               if (quarter > whole / 4 || quarter + 4096 < whole / 4) return 3;
                               dist::Arena arena{2};
                               auto* const number = reinterpret_cast<int*>(arena.at(1, arena.allocate(1 << 20)));
                               *number = 4;
                               return *number == 4 ? 0 : 4;
                             }};
  CHECK(process.wait() == std::vector<int>{0});
}
#endif
