#include <dist/core/threads.hpp>

#include <doctest/doctest.h>
#include <dist/core/duration.hpp>

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
