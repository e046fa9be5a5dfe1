#include <dist/comm/share.hpp>

#include <chrono>
#include <cstddef>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <dist/comm/thread/communicator.hpp>
#include <dist/device/replica_threads.hpp>

#include <doctest/doctest.h>

TEST_CASE("members read and write each other's values until all are done") {
  for (const std::size_t members : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{4}}) {
    CAPTURE(members);
    dist::ReplicaThreads threads{members};
    dist::ThreadGroup group{threads.status(), threads.spin_budget(), std::chrono::minutes{1}};
    std::vector<std::size_t> mistakes(members);
    threads.run([&](std::size_t rank) {
      const dist::ThreadCommunicator comm{group, rank};
      for (std::size_t round = 0; round < 1000; ++round) {
        struct Mine {
          std::size_t value;
          std::vector<std::size_t> inbox;
        } mine{rank + round, std::vector<std::size_t>(members)};
        dist::share(comm, "test", mine, [&](auto&& peers) {
          for (std::size_t peer = 0; peer < members; ++peer) peers(peer).inbox[rank] = 10 * peers(peer).value + rank;
        });
        for (std::size_t peer = 0; peer < members; ++peer)
          mistakes[rank] += mine.inbox[peer] != 10 * (rank + round) + peer;
      }
    });
    CHECK(mistakes == std::vector<std::size_t>(members));
  }
}

TEST_CASE("a group of one shares with itself") {
  int mine = 3;
  dist::share(dist::SelfCommunicator{}, "test", mine, [](auto&& peers) { peers(0) += 4; });
  CHECK(mine == 7);
}

TEST_CASE("sharing different types is a mismatch") {
  dist::ReplicaThreads threads{2};
  dist::ThreadGroup group{threads.status(), threads.spin_budget(), std::chrono::minutes{1}};
  std::string message;
  try {
    threads.run([&](std::size_t rank) {
      const dist::ThreadCommunicator comm{group, rank};
      int number = 1;
      float fraction = 1;
      if (rank == 0)
        dist::share(comm, "test", number, [](auto&&) {});
      else
        dist::share(comm, "test", fraction, [](auto&&) {});
    });
  } catch (const dist::ReplicaError& error) {
    CHECK_THROWS_AS(std::rethrow_exception(error.cause()), dist::CollectiveMismatch);
    message = error.what();
  }
  CAPTURE(message);
  CHECK(message.find("called test(int)") != std::string::npos);
  CHECK(message.find("called test(float)") != std::string::npos);
}

TEST_CASE("a failed member keeps its operands until its peers are done") {
  dist::ReplicaThreads threads{2};
  dist::ThreadGroup group{threads.status(), threads.spin_budget(), std::chrono::minutes{1}};
  std::size_t wrong = 0;
  CHECK_THROWS_AS(threads.run([&](std::size_t rank) {
    const dist::ThreadCommunicator comm{group, rank};
    std::vector<int> mine(1000, 5);
    dist::share(comm, "test", mine, [&](auto&& peers) {
      if (rank == 0) throw std::runtime_error("out of paper");
      std::this_thread::sleep_for(std::chrono::milliseconds{20});
      for (const int value : peers(0)) wrong += value != 5;
    });
  }),
                  dist::ReplicaError);
  CHECK(wrong == 0);
}
