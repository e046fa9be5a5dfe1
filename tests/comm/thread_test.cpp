#include <dist/comm/thread.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <dist/device/replica_threads.hpp>

#include <doctest/doctest.h>

namespace {

/// Threads and a group over them, as a strategy holds them.
struct Replicas {
  explicit Replicas(std::size_t count, std::chrono::nanoseconds timeout = std::chrono::minutes{1})
      : threads(count), group(threads.status(), threads.spin_budget(), timeout) {}

  template <class Fn>
  void run(Fn&& fn) {
    threads.run([&](std::size_t rank) { fn(dist::ThreadCommunicator{group, rank}); });
  }

  dist::ReplicaThreads threads;
  dist::ThreadGroup group;
};

constexpr dist::CollectiveCall small_call{.operation = "exchange", .elements = 2, .dtype = "i64"};
constexpr dist::CollectiveCall shared_call{.operation = "share", .elements = 1, .dtype = "i64"};

}  // namespace

TEST_CASE("members know their rank and how many they are") {
  Replicas replicas{3};
  std::array<std::size_t, 3> ranks{9, 9, 9};
  std::array<std::size_t, 3> sizes{};
  replicas.run([&](dist::ThreadCommunicator comm) {
    ranks[comm.rank()] = comm.rank();
    sizes[comm.rank()] = comm.size();
  });
  CHECK(ranks == std::array<std::size_t, 3>{0, 1, 2});
  CHECK(sizes == std::array<std::size_t, 3>{3, 3, 3});
}

TEST_CASE("exchange: every member receives what every member gave, 10000 times") {
  for (const std::size_t count : {std::size_t{1}, std::size_t{2}, std::size_t{3}}) {
    CAPTURE(count);
    Replicas replicas{count};
    std::vector<std::size_t> mistakes(count);
    replicas.run([&](dist::ThreadCommunicator comm) {
      std::size_t wrong = 0;
      for (std::int64_t round = 0; round < 10000; ++round) {
        const std::int64_t mine[] = {round, static_cast<std::int64_t>(comm.rank()) - round};
        comm.exchange(small_call, std::span<const std::int64_t>{mine});
        for (std::size_t peer = 0; peer < comm.size(); ++peer) {
          const std::int64_t* theirs = comm.received<std::int64_t>(peer);
          wrong += theirs[0] != round || theirs[1] != static_cast<std::int64_t>(peer) - round;
        }
      }
      mistakes[comm.rank()] = wrong;
    });
    CHECK(mistakes == std::vector<std::size_t>(count, 0));
  }
}

TEST_CASE("what an exchange received stays until this member's next call, however far ahead the peers are") {
  Replicas replicas{3};
  std::vector<std::size_t> mistakes(3);
  replicas.run([&](dist::ThreadCommunicator comm) {
    std::size_t wrong = 0;
    for (std::int64_t round = 0; round < 1000; ++round) {
      const std::int64_t mine[] = {round, 1};
      comm.exchange(small_call, std::span<const std::int64_t>{mine});
      if (round % 3 == static_cast<std::int64_t>(comm.rank())) std::this_thread::yield();
      for (std::size_t peer = 0; peer < 3; ++peer) wrong += comm.received<std::int64_t>(peer)[0] != round;
    }
    mistakes[comm.rank()] = wrong;
  });
  CHECK(mistakes == std::vector<std::size_t>(3, 0));
}

TEST_CASE("an exchange carries up to its capacity, and nothing at all") {
  Replicas replicas{2};
  std::vector<std::size_t> mistakes(2);
  replicas.run([&](dist::ThreadCommunicator comm) {
    constexpr std::size_t capacity = dist::ThreadCommunicator::exchange_capacity;
    std::array<std::uint8_t, capacity> bytes;
    for (std::size_t i = 0; i < capacity; ++i) bytes[i] = static_cast<std::uint8_t>(i + comm.rank());
    comm.exchange({.operation = "full"}, std::span<const std::uint8_t>{bytes});
    const std::size_t peer = 1 - comm.rank();
    const std::uint8_t* theirs = comm.received<std::uint8_t>(peer);
    for (std::size_t i = 0; i < capacity; ++i)
      mistakes[comm.rank()] += theirs[i] != static_cast<std::uint8_t>(i + peer);
    comm.exchange({.operation = "empty"}, std::span<const std::uint8_t>{});
  });
  CHECK(mistakes == std::vector<std::size_t>(2, 0));
}

TEST_CASE("publish: the members read and write each other's operands until the barrier, 10000 times") {
  for (const std::size_t count : {std::size_t{1}, std::size_t{2}, std::size_t{3}}) {
    CAPTURE(count);
    Replicas replicas{count};
    std::vector<std::size_t> mistakes(count);
    replicas.run([&](dist::ThreadCommunicator comm) {
      std::size_t wrong = 0;
      const std::size_t next = (comm.rank() + 1) % comm.size();
      const std::size_t previous = (comm.rank() + comm.size() - 1) % comm.size();
      for (std::int64_t round = 0; round < 10000; ++round) {
        std::int64_t mine = round * 10 + static_cast<std::int64_t>(comm.rank());
        std::int64_t inbox = -1;
        comm.publish(shared_call, &mine, &inbox);
        *comm.peer<std::int64_t>(next, 1) = *comm.peer<std::int64_t>(comm.rank(), 0);
        wrong += *comm.peer<std::int64_t>(previous, 0) != round * 10 + static_cast<std::int64_t>(previous);
        comm.barrier();
        wrong += inbox != round * 10 + static_cast<std::int64_t>(previous);
      }
      mistakes[comm.rank()] = wrong;
    });
    CHECK(mistakes == std::vector<std::size_t>(count, 0));
  }
}

TEST_CASE("barrier: what a member wrote before it, every member sees after it, 10000 times") {
  Replicas replicas{3};
  std::array<std::int64_t, 3> written{};
  std::vector<std::size_t> mistakes(3);
  replicas.run([&](dist::ThreadCommunicator comm) {
    std::size_t wrong = 0;
    for (std::int64_t round = 1; round <= 10000; ++round) {
      written[comm.rank()] = round;
      comm.barrier();
      for (const std::int64_t value : written) wrong += value != round;
      comm.barrier();
    }
    mistakes[comm.rank()] = wrong;
  });
  CHECK(mistakes == std::vector<std::size_t>(3, 0));
}

TEST_CASE("a group that was reset after a failure starts anew (spec E12)") {
  Replicas replicas{2};
  for (int repetition = 0; repetition < 3; ++repetition) {
    std::string message;
    try {
      replicas.run([](dist::ThreadCommunicator comm) {
        comm.barrier();
        if (comm.rank() == 0) comm.barrier();
      });
    } catch (const dist::ReplicaError& error) {
      CHECK(error.replica() == 0);
      CHECK_THROWS_AS(std::rethrow_exception(error.cause()), dist::CollectiveMismatch);
      message = error.what();
    }
    CAPTURE(message);
    CHECK(message.find("replica 0 called barrier as step 2 of its collectives, but replica 1 returned after 1") !=
          std::string::npos);
    replicas.group.reset();
  }
  replicas.run([](dist::ThreadCommunicator comm) { comm.barrier(); });
}

TEST_CASE("a membership with a shorter deadline gives up first; 0 waits as long as it takes (spec H13)") {
  using namespace std::chrono_literals;
  Replicas replicas{2};
  std::string message;
  try {
    replicas.run([](dist::ThreadCommunicator comm) {
      if (comm.rank() == 1) std::this_thread::sleep_for(300ms);
      comm.with_timeout(50ms).barrier();
    });
  } catch (const dist::ReplicaError& error) {
    CHECK_THROWS_AS(std::rethrow_exception(error.cause()), dist::DeadlineExceeded);
    message = error.what();
  }
  CAPTURE(message);
  CHECK(message.find("replica 0 called barrier as step 1 of its collectives and waited 0.05 s") != std::string::npos);

  Replicas patient{2, 0s};
  std::array<bool, 2> passed{};
  patient.run([&](dist::ThreadCommunicator comm) {
    if (comm.rank() == 1) std::this_thread::sleep_for(50ms);
    comm.barrier();
    if (comm.rank() == 0) std::this_thread::sleep_for(50ms);
    comm.with_timeout(0s).barrier();
    passed[comm.rank()] = true;
  });
  CHECK(passed == std::array<bool, 2>{true, true});
}

TEST_CASE("a negative timeout is refused (spec H13)") {
  using namespace std::chrono_literals;
  constexpr const char* refusal =
      "A timeout of collectives is negative (-2 s was given). Give a positive timeout, or 0 to wait as long as "
      "it takes.";
  CHECK_THROWS_WITH_AS(Replicas(1, -2s), refusal, dist::InvalidArgument);
  Replicas one{1};
  CHECK_THROWS_WITH_AS((dist::ThreadCommunicator{one.group, 0}.with_timeout(-2s)), refusal, dist::InvalidArgument);
}
