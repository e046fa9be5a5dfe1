#include <dist/core/threads.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include <dist/core/condition_variable.hpp>
#include <dist/core/duration.hpp>

#include "support/processes.hpp"

TEST_CASE("threads start, sleep and are joined") {
  std::thread::id seen;
  std::thread thread{[&] {
    seen = std::this_thread::get_id();
    std::this_thread::sleep_for(std::chrono::nanoseconds{1});
  }};
  const std::thread::id started = thread.get_id();
  thread.join();
  const bool is_that = seen == started;
  CHECK(is_that);
  const bool is_other = seen != std::this_thread::get_id();
  CHECK(is_other);
}

TEST_CASE("a forked child does not wait for the threads of its parent") {
  struct Owner {
    std::mutex mutex;
    dist::detail::ConditionVariable changed;
    bool stops = false;
    dist::detail::JoinedThread thread{std::thread{[this] {
      std::unique_lock lock{mutex};
      changed.wait(lock, [this] { return stops; });
    }}};

    ~Owner() {
      if (!thread.is_here()) return;
      {
        const std::lock_guard lock{mutex};
        stops = true;
      }
      changed.notify_all();
      thread.join();
    }
  };
  auto owner = std::make_unique<Owner>();
  CHECK(owner->thread.joinable());
  std::this_thread::sleep_for(std::chrono::milliseconds{20});  // until it sleeps
  support::Processes child{1, [&](std::size_t) {
                             const bool joinable = owner->thread.joinable();
                             owner->thread.join();
                             owner.reset();
                             return joinable ? 1 : 7;
                           }};
  CHECK(child.wait() == std::vector<int>{7});
  owner.reset();
}
