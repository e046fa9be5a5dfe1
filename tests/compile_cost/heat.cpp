// The heat equation by explicit Euler steps: each process of an MPI communicator has rows of the grid, exchanges its outer rows with its
// neighbours, and all agree on the norm and the largest change.
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <span>
#include <utility>
#include <vector>

#include <dist/comm/neighbor_exchange.hpp>
#include <dist/comm/ring_all_reduce.hpp>
#include <dist/dist.hpp>
#include <dist/strategy/multi_worker.hpp>

namespace {

constexpr std::size_t size = 512;
constexpr double alpha = 0.2;  // dt / h^2

/// Rows [first, last) of the grid, and a row before and after them.
struct Slab {
  Slab(std::size_t first, std::size_t last) : first_row(first), rows(last - first), values((rows + 2) * size) {
    for (std::size_t row = 1; row <= rows; ++row)
      for (std::size_t column = 0; column < size; ++column) {
        const auto x = static_cast<double>(first_row + row - 1), y = static_cast<double>(column);
        values[row * size + column] = std::sin(0.05 * x) * std::cos(0.03 * y);
      }
    next = values;
  }
  std::span<double> row(std::size_t number) { return std::span{values}.subspan(number * size, size); }
  /// Returns the sum of squares and the maximum of the changes. The border of the grid does not change.
  std::pair<double, double> step() {
    double squares = 0, largest = 0;
    for (std::size_t row = 1; row <= rows; ++row) {
      const std::size_t row_of_grid = first_row + row - 1;
      if (row_of_grid == 0 || row_of_grid == size - 1) continue;
      for (std::size_t i = row * size + 1; i < (row + 1) * size - 1; ++i) {
        const double change =
            alpha * (values[i - 1] + values[i + 1] + values[i - size] + values[i + size] - 4 * values[i]);
        next[i] = values[i] + change;
        squares += change * change;
        largest = std::max(largest, std::abs(change));
      }
    }
    std::swap(values, next);
    return {squares, largest};
  }

  std::size_t first_row, rows;
  std::vector<double> values, next;
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    dist::MultiWorker<dist::RingAllReduce> strategy{dist::mpi::ref(MPI_COMM_WORLD)};
    std::printf("%s\n", strategy.describe().c_str());
    const std::size_t worker = strategy.worker_rank(), workers = strategy.num_workers();
    Slab slab{worker * size / workers, (worker + 1) * size / workers};
    double norm = 0, largest = 1;
    int steps = 0;
    for (; steps < 500 && largest >= 1e-3; ++steps)
      strategy.run([&](auto& replica) {
        const std::size_t id = replica.replica_id().index();
        std::vector<dist::SendTo> sends;
        std::vector<dist::ReceiveFrom> receives;
        if (id > 0) {
          sends.emplace_back(id - 1, slab.row(1));
          receives.emplace_back(id - 1, slab.row(0));
        }
        if (id + 1 < workers) {
          sends.emplace_back(id + 1, slab.row(slab.rows));
          receives.emplace_back(id + 1, slab.row(slab.rows + 1));
        }
        replica.neighbor_exchange(sends, receives);
        const auto [squares, most] = slab.step();
        norm = std::sqrt(replica.all_reduce(dist::sum, squares));
        largest = replica.all_reduce(dist::max, most);
      });
    std::printf("%d steps, norm %.12e, largest change %.12e\n", steps, norm, largest);
  }
  MPI_Finalize();
}
