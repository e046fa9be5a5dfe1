#include <dist/server/store_memory.hpp>

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <new>
#include <vector>

#include <doctest/doctest.h>

#include <dist/device/shared_memory.hpp>

#include "support/processes.hpp"

namespace {

using namespace std::chrono_literals;

/// A mutex and its guarded data, in shared memory.
struct Guarded {
  dist::RobustMutex mutex;
  int number = 0;
};
struct Shared {
  [[nodiscard]] static Guarded& in(const dist::SharedMemory& memory) {
    return *reinterpret_cast<Guarded*>(memory.data());
  }

  dist::SharedMemory memory{4096};
  Guarded& guarded = *::new (static_cast<void*>(memory.data())) Guarded;
};

}  // namespace

TEST_CASE("processes that map a mutex at different addresses hold it one at a time") {
  constexpr int rounds = 20'000;
  const Shared shared;
  support::Processes others(2, [&](std::size_t) {
    const auto attached = dist::SharedMemory::attach(shared.memory.name());
    if (!attached) return 1;
    Guarded& same = Shared::in(*attached);
    for (int i = 0; i < rounds; ++i) {
      if (!same.mutex.lock_for(60s)) return 2;
      ++same.number;
      same.mutex.unlock();
    }
    return 0;
  });
  CHECK(others.wait() == std::vector<int>{0, 0});
  CHECK(shared.guarded.number == 2 * rounds);
}

TEST_CASE("a mutex that is not free in time is not locked") {
  const Shared shared;
  REQUIRE(shared.guarded.mutex.lock_for(1ms));
  support::Processes other(1, [&](std::size_t) {
    const auto begin = std::chrono::steady_clock::now();
    if (shared.guarded.mutex.lock_for(20ms)) return 1;
    return std::chrono::steady_clock::now() - begin >= 20ms ? 0 : 2;
  });
  CHECK(other.wait() == std::vector<int>{0});
  shared.guarded.mutex.unlock();
  CHECK(shared.guarded.mutex.lock_for(1ms));
}

TEST_CASE("a process that ends with a mutex leaves it to the next one") {
  const Shared shared;
  for (int again = 0; again < 2; ++again) {
    support::Processes other(1, [&](std::size_t) {
      if (!shared.guarded.mutex.lock_for(1s)) return 1;
      ++shared.guarded.number;
      return 0;
    });
    CHECK(other.wait() == std::vector<int>{0});
    CHECK(shared.guarded.mutex.lock_for(1s));
    CHECK(shared.guarded.number == again + 1);
    shared.guarded.mutex.unlock();
  }
}
