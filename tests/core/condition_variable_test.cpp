#include <dist/core/condition_variable.hpp>

#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

using dist::detail::ConditionVariable;
using namespace std::chrono_literals;

TEST_CASE("a waiting thread continues after a notification if the condition holds") {
  std::mutex mutex;
  ConditionVariable changed;
  int turn = 0;
  std::vector<int> order;
  std::vector<std::thread> threads;
  for (int number = 3; number >= 0; --number)
    threads.emplace_back([&, number] {
      std::unique_lock lock{mutex};
      if (number % 2 == 0)
        changed.wait(lock, [&] { return turn == number; });
      else
        CHECK(changed.wait_for(lock, 1h, [&] { return turn == number; }));
      order.push_back(number);
      ++turn;
      changed.notify_all();
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(order == std::vector<int>{0, 1, 2, 3});
}

TEST_CASE("one notification wakes one thread") {
  std::mutex mutex;
  ConditionVariable changed;
  bool ready = false;
  std::thread other{[&] {
    const std::lock_guard lock{mutex};
    ready = true;
    changed.notify_one();
  }};
  std::unique_lock lock{mutex};
  while (!ready) changed.wait(lock);
  lock.unlock();
  other.join();
}

TEST_CASE("a wait times out and returns whether the condition holds") {
  std::mutex mutex;
  ConditionVariable changed;
  std::unique_lock lock{mutex};
  const auto begin = ConditionVariable::Clock::now();
  CHECK_FALSE(changed.wait_for(lock, 20ms, [] { return false; }));
  CHECK(ConditionVariable::Clock::now() - begin >= 20ms);
  CHECK_FALSE(changed.wait_until(lock, begin, [] { return false; }));
  CHECK_FALSE(changed.wait_until(lock, ConditionVariable::Clock::time_point::min(), [] { return false; }));
  CHECK(changed.wait_until(lock, begin, [] { return true; }));
  changed.wait_for(lock, 1ms);
  changed.wait_until(lock, begin);
  CHECK(lock.owns_lock());
}

TEST_CASE("the longest timeouts do not expire at once") {
  std::mutex mutex;
  ConditionVariable changed;
  for (const bool for_ever : {false, true}) {
    bool ready = false;
    std::thread other{[&] {
      std::this_thread::sleep_for(5ms);
      const std::lock_guard lock{mutex};
      ready = true;
      changed.notify_all();
    }};
    std::unique_lock lock{mutex};
    const auto seen = [&] { return ready; };
    CHECK((for_ever ? changed.wait_until(lock, ConditionVariable::Clock::time_point::max(), seen)
                    : changed.wait_for(lock, std::chrono::nanoseconds::max(), seen)));
    lock.unlock();
    other.join();
  }
}
