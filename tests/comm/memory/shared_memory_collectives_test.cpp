#include <dist/comm/memory/shared_memory_collectives.hpp>

#include <doctest/doctest.h>

#include <dist/comm/thread/communicator.hpp>
#include <dist/device/replica_threads.hpp>

#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

TEST_CASE("what members with shared memory do alike under every policy") {
  constexpr std::size_t members = 3;
  dist::ReplicaThreads threads(members);
  dist::ThreadGroup group(threads.status(), threads.spin_budget(), std::chrono::minutes{1});
  const std::vector<std::size_t> counts(members, 1);
  std::vector<std::size_t> wrong(members);
  threads.run([&](std::size_t rank) {
    const dist::SharedMemoryCollectives collectives{dist::ThreadCommunicator{group, rank}};
    wrong[rank] += collectives.communicator().rank() != rank;
    std::size_t value = rank;
    collectives.broadcast(2, std::span<std::size_t>{&value, 1});
    wrong[rank] += value != 2;
    std::vector<std::size_t> all(members);
    collectives.all_gather(std::span<const std::size_t>{&rank, 1}, std::span<const std::size_t>{counts},
                           std::span<std::size_t>{all});
    wrong[rank] += all != std::vector<std::size_t>{0, 1, 2};
    collectives.all_gather_values("ranks", rank + 5, std::span<std::size_t>{all});
    wrong[rank] += all != std::vector<std::size_t>{5, 6, 7};
  });
  CHECK(wrong == std::vector<std::size_t>(members));
}
