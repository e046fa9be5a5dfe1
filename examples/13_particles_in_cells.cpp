// Particle-in-cell without a neural network. Every replica sorts its particles by cell and sums their energy with
// Thrust in its own queue; an all-reduce combines the grids. The source serves CPUs and GPUs.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <dist/device/thrust_policy.hpp>
#include <dist/dist.hpp>

#include "check.hpp"

namespace {

constexpr std::size_t particles = 100'000;
constexpr std::uint32_t side = 32;  // cells per axis
constexpr std::uint32_t cells = side * side;

/// Particles, densest near the corner of cell 0, that do not depend on the number of replicas.
struct Swarm {
  dist::RandomStream random{/*seed=*/2026};

  DIST_HD std::uint32_t cell(std::size_t i) const { return coordinate(5 * i) * side + coordinate(5 * i + 2); }
  /// Energy in whole quanta, so that sums do not depend on their order.
  DIST_HD std::int64_t energy(std::size_t i) const { return 1 + static_cast<std::int64_t>(random.below(4, 5 * i + 4)); }

 private:
  DIST_HD std::uint32_t coordinate(std::size_t draw) const {
    const float a = random.uniform(draw), b = random.uniform(draw + 1);
    return static_cast<std::uint32_t>((a < b ? a : b) * static_cast<float>(side));
  }
};

struct Place {
  Swarm swarm;
  std::size_t first;
  std::uint32_t* cell;
  std::int64_t* energy;
  DIST_HD void operator()(std::size_t i) const {
    cell[i] = swarm.cell(first + i);
    energy[i] = swarm.energy(first + i);
  }
};

struct Scatter {
  const std::uint32_t* cell;
  const std::int64_t* energy;
  std::int64_t* grid;
  DIST_HD void operator()(std::size_t i) const { grid[cell[i]] = energy[i]; }
};

/// Returns for each cell the energy of all particles up to this cell.
template <class Strategy>
std::vector<std::int64_t> running_energy(Strategy& strategy) {
  const dist::Shape most{particles / strategy.num_replicas_in_sync() + 1};
  auto cell_of = strategy.template buffer<std::uint32_t>(most);
  auto energy_of = strategy.template buffer<std::int64_t>(most);
  auto occupied_cells = strategy.template buffer<std::uint32_t>(dist::Shape{cells});
  auto their_energy = strategy.template buffer<std::int64_t>(dist::Shape{cells});
  auto grid_of_cells = strategy.template buffer<std::int64_t>(dist::Shape{cells});  // zero at first
  auto running_sums = strategy.template buffer<std::int64_t>(dist::Shape{cells});

  const auto results = strategy.run([&](auto& replica) {
    const dist::IndexRange mine = replica.shard(particles);
    std::uint32_t* const cell = cell_of.component(replica).data();
    std::int64_t* const energy = energy_of.component(replica).data();
    std::uint32_t* const occupied = occupied_cells.component(replica).data();
    std::int64_t* const sums = their_energy.component(replica).data();
    const auto grid = grid_of_cells.component(replica);
    const auto running = running_sums.component(replica);

    replica.for_each(mine.size(), Place{Swarm{}, mine.begin, cell, energy});
    // [thrust]
    const auto policy = dist::thrust_policy(replica);  // this replica's queue
    thrust::sort_by_key(policy, cell, cell + mine.size(), energy);
    const auto ends = thrust::reduce_by_key(policy, cell, cell + mine.size(), energy, occupied, sums);
    replica.for_each(static_cast<std::size_t>(ends.second - sums), Scatter{occupied, sums, grid.data()});
    replica.all_reduce(dist::sum, grid);  // now the sum over all replicas
    thrust::inclusive_scan(policy, grid.data(), grid.data() + cells, running.data());
    // [/thrust]

    // [copy]
    std::vector<std::int64_t> result(cells);
    replica.queue().copy(running, std::span{result});
    replica.queue().wait();
    // [/copy]
    return result;
  });
  return strategy.local_results(results)[0];
}

}  // namespace

int main() {
  dist::OneDevice<dist::Cpu> one;
  dist::Mirrored<dist::ThreadAllReduce> several{3};
  const std::vector<std::int64_t> running = running_energy(several);
  check(running_energy(one) == running, "three replicas find the same energy as one");

  // Serial reference without sorting.
  std::vector<std::int64_t> expected(cells);
  for (std::size_t i = 0; i < particles; ++i) expected[Swarm{}.cell(i)] += Swarm{}.energy(i);
  for (std::size_t cell = 1; cell < cells; ++cell) expected[cell] += expected[cell - 1];
  check(running == expected, "the energy equals the serial sum over the particles");

  std::puts("Four parts of equal energy, a partition of the grid for four nodes, begin at");
  for (std::int64_t part = 0; part < 4; ++part) {
    const auto first = std::upper_bound(running.begin(), running.end(), part * running.back() / 4) - running.begin();
    std::printf("  cell %td\n", first);
  }
}
