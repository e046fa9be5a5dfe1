#include <dist/coordinator/closure_queue.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "support/soon.hpp"
#include "support/what_throws.hpp"

namespace {

using namespace std::chrono_literals;
using dist::Closure;
using dist::ClosureQueue;
using dist::RemoteState;
using support::what_throws;

/// A closure with a number to identify it.
Closure closure(std::uint8_t number, std::optional<std::size_t> worker = {}) {
  Closure made;
  made.message = {std::byte{number}};
  made.worker = worker;
  return made;
}
int number_of(const Closure& closure) { return static_cast<int>(closure.message.at(0)); }
int take(ClosureQueue& queue, std::size_t worker = 0) {
  const std::optional<Closure> taken = queue.take(worker);
  REQUIRE(taken);
  queue.finish(*taken, {});
  return number_of(*taken);
}
std::exception_ptr mistake(const char* words) { return std::make_exception_ptr(std::runtime_error(words)); }
ClosureQueue::Until soon() { return Closure::Clock::now() + 10s; }
ClosureQueue::Until in(std::chrono::milliseconds wait) { return Closure::Clock::now() + wait; }
RemoteState state_of(const Closure& closure) { return closure.result->state(); }

}  // namespace

TEST_CASE("closures run in the order of scheduling, and join waits for all (spec L04, L06)") {
  ClosureQueue queue;
  CHECK_NOTHROW(queue.join(soon()));
  CHECK(queue.done());
  for (std::uint8_t i = 0; i < 5; ++i) queue.put(closure(i));
  CHECK_FALSE(queue.done());
  for (int i = 0; i < 4; ++i) CHECK(take(queue) == i);
  const std::optional<Closure> last = queue.take(7);
  REQUIRE(last);
  CHECK(last->attempts == 1);
  CHECK_FALSE(queue.done());  // no closure waits, but one runs
  CHECK(what_throws<dist::DeadlineExceeded>([&] { queue.join(in(20ms)); }) ==
        "The scheduled functions have not ended in time (0 wait for a worker, and 1 run). Wait longer, or see what the "
        "workers do.");
  std::thread worker([&] { queue.finish(*last, {std::byte{9}}); });
  CHECK_NOTHROW(queue.join(soon()));
  CHECK(last->result->wait(soon())[0] == std::byte{9});
  worker.join();
  CHECK(queue.done());
  CHECK(queue.counts().finished == 5);
}

TEST_CASE("the queue does not count a closure whose result or error was fetched") {
  ClosureQueue queue;
  for (int round = 0; round < 200; ++round) {
    queue.put(closure(0), soon());
    const bool fails = round % 2 == 1;
    std::optional<Closure> taken = queue.take(0);
    REQUIRE(taken);
    std::thread worker([&, taken = *taken] { fails ? queue.fail(taken, mistake("no")) : queue.finish(taken, {}); });
    if (fails) {
      CHECK_THROWS_AS(static_cast<void>(taken->result->wait(soon())), std::runtime_error);
      CHECK(what_throws<std::runtime_error>([&] { static_cast<void>(queue.done()); }) == "no");
    } else {
      CHECK_NOTHROW(static_cast<void>(taken->result->wait(soon())));
      CHECK(queue.done());
    }
    worker.join();
  }
}

TEST_CASE("schedule waits for space in a full queue, or for its timeout (spec L02)") {
  ClosureQueue queue{2};
  CHECK(ClosureQueue::default_capacity == 262'144);
  queue.put(closure(0));
  queue.put(closure(1));
  CHECK(what_throws<dist::DeadlineExceeded>([&] { queue.put(closure(2), in(20ms)); }) ==
        "A function was not scheduled in time (2 others wait for a worker, and 0 run). Call join more often, add "
        "workers, or wait longer.");
  queue.put(closure(3, 0), in(0ms));  // closures for one worker are not limited
  std::atomic<bool> put{false};
  std::thread scheduler([&] {
    queue.put(closure(2), soon());
    put = true;
  });
  std::this_thread::sleep_for(20ms);
  CHECK_FALSE(put);
  CHECK(take(queue) == 3);
  std::this_thread::sleep_for(5ms);
  CHECK_FALSE(put);
  const std::optional<Closure> first = queue.take(0);
  scheduler.join();
  REQUIRE(first);
  queue.put_back(*first);  // does not need space
  for (int i = 0; i < 3; ++i) CHECK(take(queue) == i);
  CHECK(what_throws([] { ClosureQueue{0}; }) ==
        "A queue of scheduled functions has no room (its capacity is 0). Give it room for at least one function.");
}

TEST_CASE("closures of a lost worker have priority (spec L14)") {
  ClosureQueue queue;
  for (std::uint8_t i = 0; i < 3; ++i) queue.put(closure(i));
  queue.put(closure(10, 1));
  queue.put(closure(11, 1));
  const std::optional<Closure> first = queue.take(0), own = queue.take(1);
  REQUIRE(first);
  REQUIRE(own);
  CHECK(number_of(*own) == 10);
  queue.put_back(*first);
  queue.put_back(*own);
  CHECK(state_of(*first) == RemoteState::not_ready);
  CHECK(take(queue, 1) == 10);  // the only one that may take it
  const std::optional<Closure> again = queue.take(0);
  REQUIRE(again);
  CHECK(number_of(*again) == 0);
  CHECK(again->attempts == 2);
  queue.finish(*again, {});
  CHECK(take(queue, 0) == 1);
  CHECK(take(queue, 1) == 11);
  CHECK(take(queue, 1) == 2);
  CHECK(queue.done());
}

TEST_CASE("a closure for one worker waits for it, and has priority over closures for all (spec L20)") {
  ClosureQueue queue;
  queue.put(closure(5, 1));
  std::atomic<int> other{-1};
  std::thread worker([&] { other = take(queue, 0); });
  std::this_thread::sleep_for(20ms);
  CHECK(other == -1);
  queue.put(closure(0));
  worker.join();
  CHECK(other == 0);
  queue.put(closure(1));
  CHECK_FALSE(queue.done());
  CHECK(queue.counts().waiting == 2);
  CHECK(take(queue, 1) == 5);
  CHECK(take(queue, 1) == 1);
  CHECK(queue.done());
}

TEST_CASE("the first error cancels waiting closures, is thrown once nothing runs, and the queue continues (spec L05)") {
  for (const std::string from : {"join", "done", "schedule"}) {
    CAPTURE(from);
    ClosureQueue queue;
    std::vector<Closure> closures;
    for (std::uint8_t i = 0; i < 6; ++i) {
      closures.push_back(closure(i, i == 5 ? std::optional<std::size_t>{3} : std::nullopt));
      queue.put(closures.back());
    }
    std::vector<std::optional<Closure>> running;
    for (int i = 0; i < 4; ++i) running.push_back(queue.take(0));
    queue.fail(*running[1], mistake("first"));
    queue.fail(*running[2], mistake("second"));
    CHECK(state_of(closures[1]) == RemoteState::failed);
    // At once, so that waits for them end.
    for (const std::size_t waiting : {4u, 5u}) {
      CHECK(state_of(closures[waiting]) == RemoteState::cancelled);
      CHECK(what_throws<dist::Cancelled>([&] { static_cast<void>(closures[waiting].result->wait(soon())); }) ==
            "A scheduled function was cancelled (another one failed before it ran). Schedule the function again if its "
            "result is wanted.");
    }
    const auto call = [&](ClosureQueue::Until until) {
      if (from == "join") queue.join(until);
      if (from == "done") static_cast<void>(queue.done(until));
      if (from == "schedule") queue.put(closure(9), until);
    };
    CHECK_THROWS_AS(call(in(10ms)), dist::DeadlineExceeded);  // two are still running
    std::atomic<bool> threw{false};
    std::thread caller([&] {
      CHECK(what_throws<std::runtime_error>([&] { call(soon()); }) == "first");
      threw = true;
    });
    queue.put_back(*running[3]);  // of a lost worker
    CHECK(state_of(closures[3]) == RemoteState::cancelled);
    std::this_thread::sleep_for(10ms);
    CHECK_FALSE(threw);
    queue.finish(*running[0], {});
    caller.join();
    CHECK(threw);
    CHECK(state_of(closures[0]) == RemoteState::ready);
    CHECK(what_throws<std::runtime_error>([&] { static_cast<void>(closures[2].result->wait({})); }) == "second");

    CHECK(queue.done());
    queue.put(closure(7));
    CHECK(take(queue) == 7);
    CHECK_NOTHROW(queue.join(soon()));
    const ClosureQueue::Counts counts = queue.counts();
    CHECK(counts.finished == 2);
    CHECK(counts.failed == 2);
    CHECK(counts.cancelled == 3);
  }
}

TEST_CASE("an error wakes callers that wait for space, and one of them throws it") {
  ClosureQueue queue{1};
  queue.put(closure(0));
  const std::optional<Closure> running = queue.take(0);
  queue.put(closure(1));
  std::atomic<int> threw{0}, returned{0};
  std::vector<std::thread> callers;
  const auto call = [&](auto body) {
    callers.emplace_back([&, body] {
      try {
        body();
        ++returned;
      } catch (const std::runtime_error& error) {
        CHECK(error.what() == std::string("no"));
        ++threw;
      }
    });
  };
  call([&] { queue.put(closure(2, 9), soon()); });  // no worker has this number
  REQUIRE(support::soon([&] { return queue.counts().waiting == 2; }));
  for (int i = 0; i < 2; ++i) call([&] { queue.join(soon()); });
  std::thread scheduler([&] {
    try {
      queue.put(closure(3), soon());
      CHECK(take(queue) == 3);
      ++returned;
    } catch (const std::runtime_error&) {
      ++threw;
    }
  });
  std::this_thread::sleep_for(20ms);
  queue.fail(*running, mistake("no"));
  for (std::thread& caller : callers) caller.join();
  scheduler.join();
  CHECK(threw == 1);
  CHECK(returned == 3);
  CHECK(queue.done());
}

TEST_CASE("an error outside closures is thrown like an error of a closure") {
  ClosureQueue queue;
  queue.put(closure(0));
  queue.fail(mistake("worker 3 does not come back"));
  CHECK(what_throws<std::runtime_error>([&] { queue.join(soon()); }) == "worker 3 does not come back");
  CHECK(queue.done());
  CHECK(queue.counts().cancelled == 1);
}

TEST_CASE("a closed queue cancels waiting closures, and neither returns nor accepts any") {
  ClosureQueue queue{2};
  const std::vector<Closure> closures{closure(0), closure(1), closure(2), closure(3, 5)};
  queue.put(closures[0]);
  queue.put(closures[1]);
  const std::optional<Closure> running = queue.take(0), lost = queue.take(0);
  queue.put(closures[2]);
  queue.put(closures[3]);
  queue.put(closure(4));
  std::vector<std::thread> threads;
  threads.emplace_back([&] {  // waits for space
    CHECK(what_throws<dist::Cancelled>([&] { queue.put(closure(6), soon()); }) ==
          "A function was not scheduled (its coordinator has ended). Schedule the function again if its result is "
          "wanted.");
  });
  threads.emplace_back([&] { CHECK_NOTHROW(queue.join(soon())); });
  std::this_thread::sleep_for(10ms);
  queue.close();
  threads[0].join();
  CHECK_FALSE(queue.take(0));
  CHECK_FALSE(queue.take(5));
  for (const std::size_t waiting : {2u, 3u})
    CHECK(
        what_throws<dist::Cancelled>([&] { static_cast<void>(closures[waiting].result->wait({})); }) ==
        "A scheduled function was cancelled (its coordinator has ended). Schedule the function again if its result is "
        "wanted.");
  queue.abort(*running);
  queue.put_back(*lost);
  threads[1].join();
  CHECK(state_of(closures[0]) == RemoteState::aborted);
  CHECK(
      what_throws<dist::Cancelled>([&] { static_cast<void>(closures[0].result->wait({})); }) ==
      "A scheduled function was aborted (its coordinator ended while a worker ran it). Schedule the function again if "
      "its result is wanted.");
  CHECK(state_of(closures[1]) == RemoteState::cancelled);
}

TEST_CASE("take returns for an errand, or at its time limit") {
  ClosureQueue queue;
  const auto begin = ClosureQueue::Clock::now();
  CHECK_FALSE(queue.take(0, nullptr, in(20ms)));
  CHECK(ClosureQueue::Clock::now() - begin >= 20ms);
  std::atomic<bool> errand{false};
  std::thread worker([&] {
    CHECK_FALSE(queue.take(0, &errand));
    errand = false;
    CHECK(number_of(*queue.take(0, &errand)) == 1);
  });
  std::this_thread::sleep_for(10ms);
  errand = true;
  queue.wake();
  REQUIRE(support::soon([&] { return !errand; }));
  queue.put(closure(1));
  worker.join();
}

TEST_CASE("with concurrent schedule, join, success, failure and loss, each closure ends once") {
  constexpr std::size_t schedulers = 3, workers = 4, each = 1500;
  ClosureQueue queue{16};
  std::atomic<std::size_t> ran{0}, ended_workers{0};
  std::vector<std::vector<Closure>> scheduled(schedulers);
  std::vector<int> errors(schedulers, 0);
  std::vector<std::thread> running, scheduling;
  for (std::size_t worker = 0; worker < workers; ++worker)
    running.emplace_back([&, worker] {
      std::uint32_t state = 17u + static_cast<std::uint32_t>(worker);
      while (const std::optional<Closure> closure = queue.take(worker)) {
        if (closure->worker) CHECK(*closure->worker == worker);
        const std::uint32_t dice = (state = state * 1664525u + 1013904223u) >> 16;
        if (dice % 7 == 0) {
          queue.put_back(*closure);
        } else if (dice % 211 == 0) {
          queue.fail(*closure, mistake("no"));
        } else {
          ++ran;
          queue.finish(*closure, {});
        }
      }
      ++ended_workers;
    });
  for (std::size_t scheduler = 0; scheduler < schedulers; ++scheduler)
    scheduling.emplace_back([&, scheduler] {
      for (std::size_t i = 0; i < each; ++i) {
        Closure next = closure(1, i % 5 == 0 ? std::optional{i % workers} : std::nullopt);
        try {
          queue.put(next, Closure::Clock::now() + 60s);
          scheduled[scheduler].push_back(next);
          if (i % 97 == 0) queue.join(Closure::Clock::now() + 60s);
        } catch (const std::runtime_error& error) {
          CHECK(error.what() == std::string("no"));
          ++errors[scheduler];
        }
      }
    });
  for (std::thread& thread : scheduling) thread.join();
  try {
    queue.join(Closure::Clock::now() + 60s);
  } catch (const std::runtime_error&) {
    ++errors[0];
  }
  CHECK(queue.done());
  std::uint64_t ready = 0, failed = 0, cancelled = 0;
  for (const std::vector<Closure>& of : scheduled)
    for (const Closure& closure : of) {
      const RemoteState state = state_of(closure);
      ready += state == RemoteState::ready ? 1 : 0;
      failed += state == RemoteState::failed ? 1 : 0;
      cancelled += state == RemoteState::cancelled ? 1 : 0;
      CHECK(state != RemoteState::not_ready);
    }
  const ClosureQueue::Counts counts = queue.counts();
  CHECK(ready == ran);
  CHECK(counts.finished == ready);
  CHECK(counts.failed == failed);
  CHECK(counts.cancelled == cancelled);
  CHECK(failed > 0);
  CHECK(errors[0] + errors[1] + errors[2] > 0);
  CHECK(static_cast<std::uint64_t>(errors[0] + errors[1] + errors[2]) <= failed);
  queue.close();
  for (std::thread& thread : running) thread.join();
  CHECK(ended_workers == workers);
}
