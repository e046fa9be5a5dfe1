#include <dist/device/replica_threads.hpp>

#include <doctest/doctest.h>

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/device/affinity.hpp>

using dist::ReplicaThreads;
using dist::RunStatus;

namespace {

constexpr std::array<std::size_t, 5> replica_counts{1, 2, 3, 4, 8};

}  // namespace

TEST_CASE("every replica runs once per run on a fixed thread, replica 0 on the caller's") {
  for (const std::size_t replicas : replica_counts) {
    ReplicaThreads threads(replicas);
    CHECK(threads.size() == replicas);
    std::vector<int> calls(replicas, 0);
    std::vector<std::thread::id> first(replicas);
    threads.run([&](std::size_t replica) { first[replica] = std::this_thread::get_id(); });
    std::vector<int> elsewhere(replicas, 0);
    for (int run = 0; run < 100; ++run)
      threads.run([&](std::size_t replica) {
        ++calls[replica];
        if (std::this_thread::get_id() != first[replica]) ++elsewhere[replica];
      });
    CHECK(first[0] == std::this_thread::get_id());
    for (std::size_t replica = 0; replica < replicas; ++replica) {
      CHECK(calls[replica] == 100);
      CHECK(elsewhere[replica] == 0);
      for (std::size_t other = 0; other < replica; ++other) CHECK(first[replica] != first[other]);
    }
  }
}

TEST_CASE("workers stay on their processors, the caller is not moved") {
  const std::vector<std::size_t> processors = dist::allowed_processors();
  for (const std::size_t replicas : replica_counts) {
    CAPTURE(replicas);
    std::vector<std::size_t> given(replicas);
    for (std::size_t replica = 0; replica < replicas; ++replica)
      given[replica] = processors[replica % processors.size()];
    for (const bool placed : {true, false}) {
      ReplicaThreads threads(replicas, placed ? std::span<const std::size_t>{given} : std::span<const std::size_t>{});
      std::vector<std::vector<std::size_t>> allowed(replicas);
      threads.run([&](std::size_t replica) { allowed[replica] = dist::detail::processors_of_thread(0); });
      CHECK(allowed[0] == processors);
      for (std::size_t replica = 1; replica < replicas; ++replica)
        CHECK(allowed[replica] == (placed ? std::vector<std::size_t>{given[replica]} : processors));
      const auto expected = placed ? dist::detail::SpinBudget::own_core() : dist::detail::SpinBudget::shared_core();
      CHECK(threads.spin_budget().spins == expected.spins);
    }
  }
}

TEST_CASE("a caller leaves a worker's processor before the run, unless it is bound there") {
  const std::vector<std::size_t> processors = dist::allowed_processors();
  const std::size_t mine = processors.front();
  const std::size_t others = processors.back();
  if (mine == others) return;
  ReplicaThreads threads(2, std::vector<std::size_t>{mine, others});
  std::vector<std::size_t> allowed;
  bool left = false;
  for (int attempt = 0; attempt < 1000 && !left; ++attempt) {
    dist::move_this_thread(others);
    threads.run([&](std::size_t replica) {
      if (replica != 0) return;
      left = static_cast<std::size_t>(sched_getcpu()) == mine;
      allowed = dist::detail::processors_of_thread(0);
    });
  }
  CHECK(left);
  CHECK(allowed == processors);
  std::thread([&] {
    dist::pin_this_thread(others);
    threads.run([&](std::size_t replica) {
      if (replica == 0) allowed = dist::detail::processors_of_thread(0);
    });
  }).join();
  CHECK(allowed == std::vector<std::size_t>{others});
}

TEST_CASE("the first failure is thrown once, as a ReplicaError with its cause") {
  for (const std::size_t replicas : replica_counts)
    for (std::size_t failing = 0; failing < replicas; ++failing) {
      ReplicaThreads threads(replicas);
      bool surfaced = false;
      try {
        threads.run([&](std::size_t replica) {
          if (replica == failing) throw std::out_of_range("index 7 of 5");
        });
      } catch (const dist::ReplicaError& error) {
        surfaced = true;
        CHECK(error.replica() == failing);
        CHECK(std::string(error.what()) == dist::concat("Replica ", failing, " failed in its replica function (one of ",
                                                        replicas, " replicas). It threw: index 7 of 5."));
        CHECK_THROWS_WITH_AS(std::rethrow_exception(error.cause()), "index 7 of 5", std::out_of_range);
      }
      CHECK(surfaced);
      std::vector<int> calls(replicas, 0);
      threads.run([&](std::size_t replica) { ++calls[replica]; });
      CHECK(std::count(calls.begin(), calls.end(), 1) == static_cast<std::ptrdiff_t>(replicas));
    }
}

TEST_CASE("if all replicas fail, only the earliest failure is thrown") {
  ReplicaThreads threads(4);
  std::size_t reported = 99;
  try {
    threads.run([&](std::size_t replica) {
      // The others fail only after replica 2.
      while (replica != 2 && !threads.status().failed()) std::this_thread::yield();
      throw std::runtime_error(dist::concat("replica ", replica));
    });
  } catch (const dist::ReplicaError& error) {
    reported = error.replica();
    CHECK_THROWS_WITH_AS(std::rethrow_exception(error.cause()), "replica 2", std::runtime_error);
  }
  CHECK(reported == 2);
}

TEST_CASE("the threads stay usable after a thousand failures") {
  for (const std::size_t replicas : {std::size_t{1}, std::size_t{2}, std::size_t{4}}) {
    ReplicaThreads threads(replicas);
    std::size_t right = 0;
    for (std::size_t run = 0; run < 1000; ++run) {
      const std::size_t failing = run % replicas;
      try {
        threads.run([&](std::size_t replica) {
          if (replica == failing) throw std::runtime_error("again");
        });
      } catch (const dist::ReplicaError& error) {
        if (error.replica() == failing && !threads.status().failed()) ++right;
      }
    }
    CHECK(right == 1000);
    std::atomic<std::size_t> calls{0};
    threads.run([&](std::size_t) { ++calls; });
    CHECK(calls == replicas);
  }
}

TEST_CASE("exceptions need not be std::exception") {
  ReplicaThreads threads(2);
  for (const std::size_t failing : {0U, 1U}) {
    bool surfaced = false;
    try {
      threads.run([&](std::size_t replica) {
        if (replica == failing) throw 42;
      });
    } catch (const dist::ReplicaError& error) {
      surfaced = true;
      CHECK(error.replica() == failing);
      CHECK(std::string(error.what()).find("not a std::exception") != std::string::npos);
      CHECK_THROWS_AS(std::rethrow_exception(error.cause()), int);
    }
    CHECK(surfaced);
  }
}

TEST_CASE("a run within a replica function is rejected, and the outer run continues") {
  for (const std::size_t replicas : {std::size_t{1}, std::size_t{2}, std::size_t{3}}) {
    ReplicaThreads threads(replicas);
    std::vector<std::string> refusals(replicas);
    threads.run([&](std::size_t replica) {
      try {
        threads.run([](std::size_t) {});
      } catch (const dist::WrongStrategy& refusal) {
        refusals[replica] = refusal.what();
      }
    });
    for (const std::string& refusal : refusals)
      CHECK(refusal ==
            "run was called during a run of the same strategy (a replica function called it). Call run outside of "
            "replica functions and functions of merge_call; merge_call sees all replicas at once.");
    CHECK_NOTHROW(threads.run([](std::size_t) {}));
  }
}

TEST_CASE("an uncaught error of a nested run is the cause of the failure") {
  ReplicaThreads threads(2);
  bool surfaced = false;
  try {
    threads.run([&](std::size_t replica) {
      if (replica == 1) threads.run([](std::size_t) {});
    });
  } catch (const dist::ReplicaError& error) {
    surfaced = true;
    CHECK_THROWS_AS(std::rethrow_exception(error.cause()), dist::WrongStrategy);
  }
  CHECK(surfaced);
  CHECK_NOTHROW(threads.run([](std::size_t) {}));
}

TEST_CASE("runs of several threads take turns, each with its caller as replica 0 (spec H20)") {
  constexpr std::size_t callers = 4;
  constexpr std::size_t rounds = 200;
  ReplicaThreads threads(2);
  std::atomic<int> inside{0};
  std::atomic<std::size_t> mistakes{0};
  std::vector<std::thread> running;
  for (std::size_t caller = 0; caller < callers; ++caller)
    running.emplace_back([&] {
      const std::thread::id me = std::this_thread::get_id();
      for (std::size_t round = 0; round < rounds; ++round)
        threads.run([&](std::size_t replica) {
          if (++inside > 2) ++mistakes;
          if ((std::this_thread::get_id() == me) != (replica == 0)) ++mistakes;
          if (!threads.runs_here()) ++mistakes;
          --inside;
        });
    });
  for (std::thread& thread : running) thread.join();
  CHECK(mistakes == 0);
  CHECK(!threads.runs_here());
}

TEST_CASE("a thread that waits too long for another thread's run throws") {
  ReplicaThreads threads(2, {}, std::chrono::milliseconds{20});
  std::atomic<bool> going_on{false};
  std::atomic<bool> tried{false};
  std::string message;
  std::thread second([&] {
    while (!going_on) std::this_thread::yield();
    CHECK(!threads.runs_here());
    try {
      threads.run([](std::size_t) {});
    } catch (const dist::DeadlineExceeded& error) {
      message = error.what();
    }
    tried = true;
  });
  threads.run([&](std::size_t) {
    going_on = true;
    while (!tried) std::this_thread::yield();
  });
  second.join();
  CHECK(message.find(
            "A call waited too long for the end of another thread's call of the same strategy (it waited 0.02") == 0);
}

TEST_CASE("a thread that holds the turn may run, and others wait") {
  ReplicaThreads threads(2);
  std::atomic<int> order{0};
  std::thread second;
  {
    const ReplicaThreads::Turn turn{threads};
    second = std::thread([&] {
      const ReplicaThreads::Turn later{threads};
      CHECK(order.exchange(3) == 2);
    });
    const ReplicaThreads::Turn nested{threads};
    threads.run([&](std::size_t replica) {
      if (replica == 0) CHECK(order.exchange(1) == 0);
    });
    CHECK(!threads.runs_here());
    CHECK(order.exchange(2) == 1);
  }
  second.join();
  CHECK(order == 3);
}

TEST_CASE("a thread of another replica cannot take the turn during its run") {
  ReplicaThreads threads(2);
  std::atomic<bool> refused{false};
  threads.run([&](std::size_t replica) {
    if (replica == 0) return static_cast<void>(ReplicaThreads::Turn{threads});
    try {
      const ReplicaThreads::Turn turn{threads};
    } catch (const dist::WrongStrategy&) {
      refused = true;
    }
  });
  CHECK(refused);
}

TEST_CASE("zero replicas, and far too many, are rejected") {
  CHECK_THROWS_WITH_AS(ReplicaThreads(0),
                       "A strategy cannot have that many replicas (0 were requested, 1 to 4096 are possible). Request "
                       "one replica per core.",
                       dist::InvalidArgument);
  CHECK_THROWS_AS(ReplicaThreads(4097), dist::InvalidArgument);
  CHECK_THROWS_AS(ReplicaThreads(static_cast<std::size_t>(-1)), dist::InvalidArgument);
}

TEST_CASE("the status reports which peers have returned in this run") {
  ReplicaThreads threads(3);
  const RunStatus& status = threads.status();
  CHECK(status.replicas() == 3);
  for (int run = 0; run < 50; ++run) {
    std::array<bool, 3> own{};
    threads.run([&](std::size_t replica) {
      if (replica > 0)
        while (!status.has_returned(replica - 1)) std::this_thread::yield();  // so they return in order
      own[replica] = status.has_returned(replica);
    });
    CHECK(!(own[0] || own[1] || own[2]));
    for (std::size_t replica = 0; replica < 3; ++replica) CHECK(status.has_returned(replica));
  }
}

TEST_CASE("the status reports a failure during the run, and is reset afterwards") {
  ReplicaThreads threads(3);
  std::array<bool, 3> saw{};
  CHECK_THROWS_AS(threads.run([&](std::size_t replica) {
    if (replica == 1) throw std::runtime_error("failed");
    while (!threads.status().failed()) std::this_thread::yield();
    saw[replica] = true;
  }),
                  dist::ReplicaError);
  CHECK(saw[0]);
  CHECK(saw[2]);
  CHECK(!threads.status().failed());
}

TEST_CASE("writes of the caller are visible to the workers, and vice versa") {
  ReplicaThreads threads(4);
  std::vector<std::size_t> values(4, 0);
  std::size_t base = 0;
  std::size_t wrong = 0;
  for (std::size_t run = 1; run <= 500; ++run) {
    base = run;
    threads.run([&](std::size_t replica) { values[replica] = base * 10 + replica; });
    for (std::size_t replica = 0; replica < 4; ++replica)
      if (values[replica] != run * 10 + replica) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("tasks may be constant, temporary or stateful") {
  ReplicaThreads threads(2);
  std::atomic<int> calls{0};
  const auto constant = [&](std::size_t) { ++calls; };
  threads.run(constant);
  threads.run([&, own = std::array<int, 2>{}](std::size_t replica) mutable { calls += ++own[replica]; });
  CHECK(calls == 4);
}

TEST_CASE("threads that never ran or are asleep exit on destruction") {
  for (const std::size_t replicas : replica_counts) ReplicaThreads{replicas};
  for (int i = 0; i < 20; ++i) {
    ReplicaThreads threads(3);
    std::atomic<int> calls{0};
    threads.run([&](std::size_t) { ++calls; });
    CHECK(calls == 3);
  }
}
