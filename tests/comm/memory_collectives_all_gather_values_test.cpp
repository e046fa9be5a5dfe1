#include <dist/comm/memory_collectives.hpp>

#include <doctest/doctest.h>

#include <dist/comm/self.hpp>
#include <dist/comm/thread/communicator.hpp>
#include <dist/core/shape.hpp>
#include <dist/device/replica_threads.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

TEST_CASE("every member gets a value of each member, of any size") {
  using Large = std::array<std::size_t, 100>;
  for (const std::size_t members : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{4}}) {
    dist::ReplicaThreads threads(members);
    dist::ThreadGroup group(threads.status(), threads.spin_budget(), std::chrono::minutes{1});
    std::vector<std::size_t> wrong(members);
    threads.run([&](std::size_t rank) {
      const dist::ThreadCommunicator comm{group, rank};
      std::vector<dist::Shape> shapes(members);
      dist::all_gather_values(comm, "shapes", dist::Shape{rank + 1, 2}, std::span<dist::Shape>{shapes});
      std::vector<Large> large(members);
      Large mine{};
      mine[99] = rank;
      dist::all_gather_values(comm, "large", mine, std::span<Large>{large});
      for (std::size_t other = 0; other < members; ++other)
        wrong[rank] += shapes[other] != dist::Shape{other + 1, 2} || large[other][99] != other;
    });
    CHECK(wrong == std::vector<std::size_t>(members));
  }
}

TEST_CASE("in a group of one, all_gather_values is a copy (spec H03)") {
  std::vector<int> all(1);
  dist::SelfCollectives::all_gather_values("number", 7, std::span<int>{all});
  CHECK(all[0] == 7);
}
