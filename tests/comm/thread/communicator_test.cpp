#include <dist/comm/thread/communicator.hpp>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <dist/comm/health/timeout.hpp>
#include <dist/comm/share.hpp>
#include <dist/device/replica_threads.hpp>

#include <doctest/doctest.h>
#include <support/end_of.hpp>
#include <support/stderr_of.hpp>

static_assert(dist::SharesMemory<dist::ThreadCommunicator> && dist::ExchangesSmall<dist::ThreadCommunicator> &&
              dist::ReportsFailures<dist::ThreadCommunicator> && dist::ComparesCalls<dist::ThreadCommunicator> &&
              dist::HasLocalGroup<dist::ThreadCommunicator>);

namespace {

/// Threads and their group, as a strategy holds them.
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
/// Returns true if an exchange gives every member the same `number`.
bool all_have(dist::ThreadCommunicator comm, std::int64_t number) {
  comm.exchange({.operation = "exchange", .elements = 1, .dtype = "i64"}, std::span<const std::int64_t>{&number, 1});
  bool same = true;
  for (std::size_t peer = 0; peer < comm.size(); ++peer) same = same && *comm.received<std::int64_t>(peer) == number;
  return same;
}

constexpr dist::CollectiveCall shared_call{.operation = "share", .elements = 1, .dtype = "i64"};

}  // namespace

TEST_CASE("members return their rank and the size of the group") {
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

TEST_CASE("exchange delivers every member's values to every member in 10000 rounds") {
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

TEST_CASE("values received in an exchange stay valid until the member's next call even if peers are ahead") {
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

TEST_CASE("exchange transfers up to its capacity and accepts no values") {
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

TEST_CASE("after publish members read and write each other's operands until the barrier in 10000 rounds") {
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
        comm.publish(shared_call, {.read = &mine, .write = &inbox});
        *comm.peer_to_write<std::int64_t>(next) = *comm.peer<std::int64_t>(comm.rank());
        wrong += *comm.peer<std::int64_t>(previous) != round * 10 + static_cast<std::int64_t>(previous);
        comm.barrier();
        wrong += inbox != round * 10 + static_cast<std::int64_t>(previous);
      }
      mistakes[comm.rank()] = wrong;
    });
    CHECK(mistakes == std::vector<std::size_t>(count, 0));
  }
}

TEST_CASE("a barrier makes earlier writes visible to every member in 10000 rounds") {
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

TEST_CASE("reset after a failure lets a group start again (spec E12)") {
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
    CHECK(message.find("replica 0 called barrier as step 2 of its collectives, but replica 1 returned after step 1") !=
          std::string::npos);
    replicas.group.reset();
  }
  replicas.run([](dist::ThreadCommunicator comm) { comm.barrier(); });
}

TEST_CASE("a membership with a shorter deadline times out first and one with 0 has no deadline (spec H13)") {
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

TEST_CASE("a negative timeout throws InvalidArgument (spec H13)") {
  using namespace std::chrono_literals;
  constexpr const char* refusal =
      "A timeout of collectives is negative (-2 s was given). Give a positive timeout, or 0 to wait as long as "
      "it takes.";
  CHECK_THROWS_WITH_AS(Replicas(1, -2s), refusal, dist::InvalidArgument);
  Replicas one{1};
  CHECK_THROWS_WITH_AS((dist::ThreadCommunicator{one.group, 0}.with_timeout(-2s)), refusal, dist::InvalidArgument);
}

TEST_CASE(
    "members that disagree all throw in the same collective and stay in step if they catch the error (spec E12)") {
  for (const std::size_t count : {std::size_t{2}, std::size_t{3}, std::size_t{4}, std::size_t{8}}) {
    CAPTURE(count);
    Replicas replicas{count};
    std::vector<std::size_t> wrong(count);
    replicas.run([&](dist::ThreadCommunicator comm) {
      std::int64_t operand = 0;
      for (std::int64_t round = 0; round < 300; ++round) {
        // One member makes another call, of changing kinds: every member sees a peer with a different call.
        const bool odd = static_cast<std::size_t>(round) % count == comm.rank();
        try {
          if (odd == (round % 2 == 0))
            comm.barrier();
          else if (round % 3 == 0)
            comm.publish(shared_call, {.read = &operand});
          else
            comm.exchange(small_call, std::span<const std::int64_t>{&round, 1});
          ++wrong[comm.rank()];
        } catch (const dist::CollectiveMismatch& error) {
          const std::string_view message = error.what();
          wrong[comm.rank()] += message.find(dist::concat("as step ", 2 * round + 1)) == std::string_view::npos;
        }
        wrong[comm.rank()] += !all_have(comm, round);
      }
    });
    CHECK(wrong == std::vector<std::size_t>(count, 0));
  }
}

TEST_CASE("members that catch a missed deadline are in step again (spec H13)") {
  using namespace std::chrono_literals;
  for (const std::size_t count : {std::size_t{2}, std::size_t{4}}) {
    CAPTURE(count);
    Replicas replicas{count, 150ms};
    std::vector<std::size_t> late(count);
    std::vector<std::size_t> wrong(count);
    replicas.run([&](dist::ThreadCommunicator comm) {
      const dist::ThreadCommunicator patient = comm.with_timeout(1min);
      for (std::int64_t round = 0; round < 2; ++round) {
        wrong[comm.rank()] += !all_have(patient, round);
        if (static_cast<std::size_t>(round) % count == comm.rank()) std::this_thread::sleep_for(600ms);
        try {
          wrong[comm.rank()] += !all_have(comm, -round);  // with the members that arrive in time, or throws
        } catch (const dist::DeadlineExceeded& error) {
          const std::string_view message = error.what();
          wrong[comm.rank()] += message.find("did not reach a collective in time") == std::string_view::npos;
          ++late[comm.rank()];
        }
      }
      wrong[comm.rank()] += !all_have(patient, 99);
    });
    CHECK(wrong == std::vector<std::size_t>(count, 0));
    CHECK(late == std::vector<std::size_t>(count, 2));
  }
}

TEST_CASE("a member that leaves a collective by an exception and continues does not shift its peers") {
  Replicas replicas{3};
  std::vector<std::size_t> wrong(3);
  replicas.run([&](dist::ThreadCommunicator comm) {
    for (std::int64_t round = 0; round < 100; ++round) {
      try {
        std::int64_t operand = round;
        const dist::detail::Borrowed loan{comm};
        comm.publish(shared_call, {.read = &operand});
        if (comm.rank() == 1) throw std::runtime_error("no update");
        comm.barrier();
        ++wrong[comm.rank()];
      } catch (const dist::CollectiveMismatch& error) {
        const std::string_view message = error.what();
        wrong[comm.rank()] += message.find("replica 1 called share of 1 i64 as step ") == std::string_view::npos ||
                              message.find("left it with an exception") == std::string_view::npos;
      } catch (const std::runtime_error&) {
        wrong[comm.rank()] += comm.rank() != 1;
      }
      comm.barrier();  // must not match the barrier above
      wrong[comm.rank()] += !all_have(comm, round);
    }
  });
  CHECK(wrong == std::vector<std::size_t>(3, 0));
}

TEST_CASE("cancel makes all members throw in the same collective and the run blames the member that called it") {
  Replicas replicas{3};
  std::vector<std::size_t> wrong(3);
  const auto fail = [&](dist::ThreadCommunicator comm) {
    try {
      if (comm.rank() == 2) throw std::runtime_error("worker 7 is lost");
      comm.barrier();
    } catch (const std::runtime_error& error) {
      if (comm.rank() == 2) comm.cancel(std::current_exception());
      throw;
    }
  };
  replicas.run([&](dist::ThreadCommunicator comm) {
    for (std::int64_t round = 0; round < 100; ++round) {
      try {
        fail(comm);
        ++wrong[comm.rank()];
      } catch (const std::runtime_error& error) {
        wrong[comm.rank()] += std::string_view{error.what()} != "worker 7 is lost";
      }
      wrong[comm.rank()] += !all_have(comm, round);
    }
  });
  CHECK(wrong == std::vector<std::size_t>(3, 0));
  for (int again = 0; again < 50; ++again) {
    std::size_t blamed = 0;
    try {
      replicas.run(fail);
    } catch (const dist::ReplicaError& error) {
      blamed = error.replica();
    }
    CHECK(blamed == 2);
    replicas.group.reset();
  }
}

TEST_CASE("a deadline counts from the start of the wait even if polling lasts longer") {
  using namespace std::chrono_literals;
  dist::ReplicaThreads threads(2);
  dist::ThreadGroup group(threads.status(), {.spins = 1, .yields = 1'000'000'000}, 50ms);
  const auto begin = std::chrono::steady_clock::now();
  CHECK_THROWS_AS(threads.run([&](std::size_t rank) {
    const dist::ThreadCommunicator comm{group, rank};
    if (rank == 1) std::this_thread::sleep_for(300ms);
    comm.barrier();
  }),
                  dist::ReplicaError);
  CHECK(std::chrono::steady_clock::now() - begin < 1min);
}

TEST_CASE("writing to an operand that a peer lends for reading violates a contract") {
  const testing::Ending ending = testing::stderr_of([] {
    Replicas replicas{1};
    replicas.run([](dist::ThreadCommunicator comm) {
      const std::int64_t operand = 0;
      comm.publish(shared_call, {.read = &operand});
      static_cast<void>(comm.peer_to_write<std::int64_t>(0));
    });
  });
  CHECK(ending.aborted);
  CHECK(ending.says("broken contract"));
}

TEST_CASE("a peer that does not return operands ends the process with a message that names the peer and its call") {
  using namespace std::chrono_literals;
  const support::End end = support::end_of([] {
    Replicas replicas{2, 50ms};
    replicas.run([&](dist::ThreadCommunicator comm) {
      std::int64_t operand = 0;
      const dist::detail::Borrowed loan{comm};
      comm.publish(shared_call, {.read = &operand});
      if (comm.rank() == 1) std::this_thread::sleep_for(1min);  // an update that hangs
      comm.barrier();
    });
  });
  CAPTURE(end.said);
  CHECK(end.status == dist::detail::exit_late);
  CHECK(end.took < 30s);
  CHECK(end.said.find("Replica 1 did not release the operands of a collective in time (replica 1 called share of 1 i64 "
                      "as step 1 of its collectives and still uses operands of replica 0") != std::string::npos);
}

TEST_CASE("a chosen report signal makes a process print which replica and call its replicas wait for") {
  using namespace std::chrono_literals;
  const support::End end = support::end_of([] {
    setenv("DIST_REPORT_SIGNAL", std::to_string(SIGUSR1).c_str(), 1);
    Replicas replicas{3};
    replicas.run([&](dist::ThreadCommunicator comm) {
      // By then the other members sleep: before, they yield, which lasts long on busy cores.
      const auto is_asked_by_then = [&] {
        if (comm.rank() != 1) return;
        std::this_thread::sleep_for(800ms);
        raise(SIGUSR1);
      };
      is_asked_by_then();
      comm.barrier();
      std::int64_t operand = 0;
      const dist::detail::Borrowed loan{comm};
      comm.publish(shared_call, {.read = &operand});
      is_asked_by_then();
      comm.barrier();
    });
    raise(SIGUSR1);
  });
  CAPTURE(end.said);
  CHECK(end.status == 0);
  const auto says = [&](const char* what) { return end.said.find(what) != std::string::npos; };
  CHECK(says(") waits for replica 1: replica 0 called barrier as step 1 of its collectives, since 0."));
  CHECK(says(") waits for replica 1: replica 2 called barrier as step 1 of its collectives, since 0."));
  CHECK(
      says(") waits for replica 1, which uses operands of replica 0: replica 0 called share of 1 i64 as step 2 of its "
           "collectives, since 0."));
  CHECK(says(") waits for no other process or replica\n"));
}

TEST_CASE("replicas ignore SIGUSR1 if another report signal is chosen or the program ignores it") {
  const auto status_with = [](const char* chosen, void (*handler)(int)) {
    return support::end_of([&] {
             setenv("DIST_REPORT_SIGNAL", chosen, 1);
             signal(SIGUSR1, handler);
             const Replicas replicas{2};
             struct sigaction now {};
             sigaction(SIGUSR1, nullptr, &now);
             _exit(now.sa_handler == handler ? 0 : 1);
           })
        .status;
  };
  CHECK(status_with("0", SIG_DFL) == 0);
  CHECK(status_with("10", SIG_IGN) == 0);
}
