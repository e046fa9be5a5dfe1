#include <dist/comm/share.hpp>

#include <doctest/doctest.h>

#include <dist/comm/thread/communicator.hpp>
#include <dist/device/replica_threads.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

TEST_CASE("a member that throws waits until the peers no longer use its operands") {
  constexpr std::size_t members = 3;
  dist::ReplicaThreads threads(members);
  dist::ThreadGroup group(threads.status(), threads.spin_budget(), std::chrono::minutes{1});
  for (int round = 0; round < 50; ++round) {
    std::atomic<std::size_t> reading{0};
    std::atomic<std::size_t> wrong{0};
    std::string message;
    try {
      threads.run(
          [&](std::size_t rank) {
            const dist::ThreadCommunicator comm{group, rank};
            std::vector<int> values(1000, 7);
            const dist::detail::Borrowed loan{comm};
            comm.publish({.operation = "read", .elements = 1000}, {.read = values.data()});
            if (rank == 1) throw std::runtime_error("no more");
            ++reading;
            std::this_thread::sleep_for(std::chrono::microseconds{200});
            const int* const theirs = comm.peer<int>(1);
            for (std::size_t i = 0; i < 1000; ++i) wrong += theirs[i] != 7;
            comm.barrier();
          },
          [&] { group.reset(); });
    } catch (const dist::ReplicaError& error) {
      CHECK(error.replica() == 1);
      message = error.what();
    }
    CHECK(message.find("no more") != std::string::npos);
    CHECK(reading == 2);
    CHECK(wrong == 0);
  }
}

TEST_CASE("all members may throw at once") {
  constexpr std::size_t members = 4;
  dist::ReplicaThreads threads(members);
  dist::ThreadGroup group(threads.status(), threads.spin_budget(), std::chrono::minutes{1});
  for (int round = 0; round < 200; ++round)
    CHECK_THROWS_AS(threads.run(
                        [&](std::size_t rank) {
                          const dist::ThreadCommunicator comm{group, rank};
                          int value = 0;
                          const dist::detail::Borrowed loan{comm};
                          comm.publish({.operation = "read", .elements = 1}, {.read = &value});
                          throw std::runtime_error("all");
                        },
                        [&] { group.reset(); }),
                    dist::ReplicaError);
}
