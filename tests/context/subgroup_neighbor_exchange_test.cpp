#include <dist/context/subgroup.hpp>

#include <dist/dist.hpp>

#include <vector>

#include <doctest/doctest.h>

TEST_CASE("a replica function exchanges with its neighbours") {
  dist::Mirrored<dist::ThreadAllReduce> strategy{3};
  const auto received = strategy.run([](auto& replica) {
    const std::size_t rank = replica.replica_id().index();
    const std::vector<int> row(2, static_cast<int>(rank));
    std::vector<int> halo(2, -1);
    replica.neighbor_exchange({{(rank + 1) % 3, row}}, {{(rank + 2) % 3, halo}});
    return halo;
  });
  for (std::size_t rank = 0; rank < 3; ++rank)
    CHECK(received[rank] == std::vector<int>(2, static_cast<int>((rank + 2) % 3)));
}

TEST_CASE("a single replica is its own neighbour") {
  dist::Default strategy;
  const std::vector<int> row{1, 2, 3};
  std::vector<int> halo(3);
  strategy.run([&](auto& replica) { replica.neighbor_exchange({{0, row}}, {{0, halo}}); });
  CHECK(halo == row);
}
