#include <dist/rpc/grpc/poller_threads.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <latch>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "rpc/grpc/queue_events.hpp"
#include "rpc/grpc/raw_call.hpp"
#include "support/grpc_suppressions.hpp"
#include "support/soon.hpp"

namespace {

using namespace std::chrono_literals;
using support::soon;

/// A queue and threads that poll it.
struct Pool {
  explicit Pool(std::size_t count) { threads.start(count, "dist pool"); }
  ~Pool() {
    events.end();
    threads.join();
  }

  dist_test::QueueEvents events;
  dist::grpc::PollerThreads threads{events.queue()};
};

}  // namespace

TEST_CASE("one thread handles short events, and others replace a busy one") {
  std::mutex mutex;
  std::vector<std::thread::id> by;
  std::latch go_on{1};
  std::atomic<int> waiting{0}, handled{0};
  const auto note = [&] {
    const std::lock_guard lock{mutex};
    by.push_back(std::this_thread::get_id());
    ++handled;
  };
  const auto wait = [&] {
    ++waiting;
    go_on.wait();
  };
  Pool pool{3};
  for (int i = 0; i < 100; ++i) {
    pool.events.put(0ns, note);
    std::this_thread::sleep_for(1ms);
  }
  REQUIRE(soon([&] { return handled == 100; }));
  std::size_t switches = 0;
  for (std::size_t i = 1; i < by.size(); ++i) switches += by[i] != by[i - 1] ? 1 : 0;
  CHECK(switches < 50);  // a thread that the system suspends counts as busy

  // The third thread handles events while two are busy.
  pool.events.put(0ns, wait);
  CHECK(soon([&] { return waiting == 1; }));
  pool.events.put(0ns, wait);
  CHECK(soon([&] { return waiting == 2; }));
  for (int i = 0; i < 10; ++i) pool.events.put(0ns, note);
  CHECK(soon([&] { return handled == 110; }));
  go_on.count_down();
  for (int i = 0; i < 10; ++i) pool.events.put(0ns, note);
  CHECK(soon([&] { return handled == 120; }));
}

TEST_CASE("a busy thread is detected after a pause") {
  Pool pool{2};
  for (int again = 0; again < 3; ++again) {
    std::this_thread::sleep_for(100ms);
    std::latch go_on{1};
    std::atomic<bool> waiting{false}, other{false};
    pool.events.put(0ns, [&] {
      waiting = true;
      go_on.wait();
      waiting = false;
    });
    CHECK(soon([&] { return waiting.load(); }));
    pool.events.put(0ns, [&] { other = true; });
    CHECK(soon([&] { return other.load(); }));
    go_on.count_down();
    CHECK(soon([&] { return !waiting; }));
  }
}

TEST_CASE("step_back replaces a busy thread at once, and only once") {
  std::atomic<int> at_once{0}, handled{0};
  constexpr int times = 50;
  Pool pool{2};
  for (int i = 0; i < times; ++i) {
    std::atomic<bool> ended{false};
    pool.events.put(0ns, [&, i] {
      const auto begin = std::chrono::steady_clock::now();
      pool.threads.step_back();
      pool.threads.step_back();
      while (handled == i && std::chrono::steady_clock::now() - begin < 10s) std::this_thread::sleep_for(20us);
      if (std::chrono::steady_clock::now() - begin < 1ms) ++at_once;
      ended = true;
    });
    pool.events.put(0ns, [&] { ++handled; });
    REQUIRE(soon([&] { return ended.load(); }));
  }
  CHECK(handled == times);
  CHECK(at_once > 0);  // within the millisecond after which a busy thread is replaced anyway
}

TEST_CASE("step_back of a replaced thread does not affect its replacement") {
  std::latch go_on{1};
  std::atomic<bool> waiting{false}, ended{false};
  std::atomic<int> handled{0};
  Pool pool{2};
  pool.events.put(0ns, [&] {
    waiting = true;
    go_on.wait();
    pool.threads.step_back();
    ended = true;
  });
  CHECK(soon([&] { return waiting.load(); }));
  pool.events.put(0ns, [&] { ++handled; });
  CHECK(soon([&] { return handled == 1; }));
  go_on.count_down();
  CHECK(soon([&] { return ended.load(); }));
  for (int i = 0; i < 100; ++i) pool.events.put(0ns, [&] { ++handled; });
  CHECK(soon([&] { return handled == 101; }));
}

TEST_CASE("threads end with their queue, after they have handled its events") {
  std::atomic<bool> begun{false}, ended{false};
  {
    Pool pool{3};
    CHECK(pool.threads.started());
    CHECK(soon([] { return dist_test::threads_named("dist pool") == 3; }));
    pool.events.put(0ns, [&] {
      begun = true;
      std::this_thread::sleep_for(50ms);
      ended = true;
    });
    CHECK(soon([&] { return begun.load(); }));
  }
  CHECK(ended);
  CHECK(dist_test::threads_named("dist pool") == 0);
}
