#include <dist/device/wait.hpp>

#include <doctest/doctest.h>

#include <time.h>

#include <atomic>
#include <cstdint>
#include <thread>

namespace {

void sleep_milliseconds(long count) {
  const timespec duration{0, count * 1'000'000};
  nanosleep(&duration, nullptr);
}

}  // namespace

TEST_CASE("a changed word is returned at once, with any budget") {
  const std::atomic<std::uint32_t> word{5};
  CHECK(dist::detail::wait_for_change(word, 4, {0}) == 5);
  CHECK(dist::detail::wait_for_change(word, 4, dist::detail::SpinBudget::own_core()) == 5);
}

TEST_CASE("a sleeping waiter is woken by the notification") {
  for (const unsigned spins : {0U, 16U, 4'000U}) {
    std::atomic<std::uint32_t> word{1};
    std::uint32_t seen = 0;
    std::thread waiter([&] { seen = dist::detail::wait_for_change(word, 1, {spins}); });
    sleep_milliseconds(5);
    word.store(2, std::memory_order_release);
    word.notify_all();
    waiter.join();
    CHECK(seen == 2);
  }
}

TEST_CASE("a notification without a change does not end the wait") {
  std::atomic<std::uint32_t> word{1};
  std::atomic<bool> returned{false};
  std::thread waiter([&] {
    static_cast<void>(dist::detail::wait_for_change(word, 1, {0}));
    returned.store(true);
  });
  for (int i = 0; i < 3; ++i) {
    sleep_milliseconds(2);
    word.notify_all();
  }
  CHECK(!returned.load());
  word.store(9);
  word.notify_all();
  waiter.join();
  CHECK(returned.load());
}

TEST_CASE("writes before the change are visible after the wait") {
  std::atomic<std::uint32_t> word{0};
  int payload = 0;
  int sum = 0;
  std::thread waiter([&] {
    std::uint32_t seen = 0;
    for (int round = 0; round < 1000; ++round) {
      seen = dist::detail::wait_for_change(word, seen, {16});
      sum += payload;
      word.store(++seen, std::memory_order_release);
      word.notify_all();
    }
  });
  for (std::uint32_t round = 0; round < 1000; ++round) {
    payload = static_cast<int>(round);
    word.store(2 * round + 1, std::memory_order_release);
    word.notify_all();
    while (word.load(std::memory_order_acquire) != 2 * round + 2)
      static_cast<void>(dist::detail::wait_for_change(word, 2 * round + 1, {16}));
  }
  waiter.join();
  CHECK(sum == 499'500);
}

TEST_CASE("a thread with a dedicated core spins longer than one that shares it") {
  CHECK(dist::detail::SpinBudget::own_core().spins > dist::detail::SpinBudget::shared_core().spins);
  CHECK(dist::detail::SpinBudget::shared_core().spins > 0);
}

TEST_CASE("polling ends when the condition holds or the budget is used up") {
  int looks = 0;
  const auto is_over_at = [&](int look) { return [&looks, look] { return ++looks == look; }; };
  CHECK(dist::detail::look_within({2, 3}, is_over_at(4)));
  CHECK(looks == 4);
  looks = 0;
  CHECK_FALSE(dist::detail::look_within({2, 3}, is_over_at(-1)));
  CHECK(looks == 6);
}

TEST_CASE("a sleeper returns when woken, after its timeout, or at once if the condition holds") {
  dist::detail::EventCount event;
  std::atomic<bool> come{true};
  const auto awaited = [&] { return come.load(); };
  event.wait(awaited, 60'000'000'000);  // otherwise the test would hang

  come.store(false);
  const std::int64_t start = dist::detail::monotonic_nanoseconds();
  event.wait(awaited, 3'000'000);
  CHECK(dist::detail::monotonic_nanoseconds() - start < 60'000'000'000);

  std::atomic<int> awake{0};
  const auto sleep_until_come = [&] {
    while (!come.load()) event.wait(awaited, 60'000'000'000);
    awake.fetch_add(1);
  };
  std::thread first{sleep_until_come};
  std::thread second{sleep_until_come};
  sleep_milliseconds(3);
  event.notify(awaited);  // spurious: the condition does not hold
  CHECK(awake.load() == 0);
  come.store(true);
  event.notify(awaited);
  first.join();
  second.join();
  CHECK(awake.load() == 2);
}

TEST_CASE("no wake-up is lost between check and sleep, 10000 times") {
  dist::detail::EventCount event;
  std::atomic<int> turn{0};
  const auto take_turns = [&](int mine) {
    for (int round = 0; round < 10'000; ++round) {
      const int awaited = 2 * round + mine;
      const auto is_mine = [&] { return turn.load() == awaited; };
      while (!is_mine()) event.wait(is_mine, 60'000'000'000);
      turn.store(awaited + 1);
      event.notify([] { return true; });
    }
  };
  std::thread other{[&] { take_turns(1); }};
  take_turns(0);
  other.join();
  CHECK(turn.load() == 20'000);
}

TEST_CASE("the clock is monotonic, in nanoseconds") {
  const std::int64_t before = dist::detail::monotonic_nanoseconds();
  sleep_milliseconds(3);
  dist::detail::relax();
  const std::int64_t after = dist::detail::monotonic_nanoseconds();
  CHECK(after - before >= 3'000'000);
  CHECK(after - before < 60'000'000'000);
}
