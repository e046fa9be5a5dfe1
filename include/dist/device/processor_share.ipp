#pragma once

#include <cstdlib>

#include <dist/device/affinity.hpp>
#include <dist/device/processor_place.hpp>
#include <dist/device/processor_share.hpp>
#include <dist/device/topology.hpp>

namespace dist {

namespace detail {

DIST_INLINE std::size_t tasks_of_node(const char* list, std::size_t node) noexcept {
  for (;;) {
    char* end = nullptr;
    const std::size_t tasks = std::strtoull(list, &end, 10);
    std::size_t nodes = 1;
    if (end[0] == '(' && end[1] == 'x') {
      nodes = std::strtoull(end + 2, &end, 10);
      if (*end++ != ')') return 0;
    }
    if (node < nodes) return tasks;
    if (*end != ',') return 0;
    node -= nodes;
    list = end + 1;
  }
}

DIST_INLINE LocalProcesses local_processes() noexcept {
  constexpr const char* variables[][2] = {{"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
                                          {"MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
                                          {"MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"},
                                          {"LOCAL_RANK", "LOCAL_WORLD_SIZE"}};
  for (const auto& [rank, size] : variables) {
    const char* const number = std::getenv(rank);
    const char* const count = std::getenv(size);
    if (number == nullptr || count == nullptr) continue;
    const LocalProcesses found{std::strtoull(number, nullptr, 10), std::strtoull(count, nullptr, 10)};
    if (found.number < found.count) return found;
  }
  // Last, as srun may have started another launcher.
  const char* const number = std::getenv("SLURM_LOCALID");
  const char* const node = std::getenv("SLURM_NODEID");
  const char* const tasks = std::getenv("SLURM_STEP_TASKS_PER_NODE");
  if (number != nullptr && node != nullptr && tasks != nullptr) {
    const LocalProcesses found{std::strtoull(number, nullptr, 10),
                               tasks_of_node(tasks, std::strtoull(node, nullptr, 10))};
    if (found.number < found.count) return found;
  }
  return {};
}

DIST_INLINE std::vector<std::size_t> share_of(const Topology& places, LocalProcesses here) {
  std::vector<std::size_t> positions;
  for (std::size_t at = 0; at < places.size(); ++at) positions.push_back(at);
  const std::size_t each = positions.size() / here.count;
  if (here.count == 1 || each == 0) return positions;
  const auto key = [&](std::size_t at) {
    return ProcessorKey{places[at].package, places[at].node, places[at].cache, places[at].core, at};
  };
  sort_almost_sorted(positions, [&](std::size_t one, std::size_t other) { return key(one) < key(other); });
  const auto first = positions.begin() + static_cast<std::ptrdiff_t>(here.number * each);
  std::vector<std::size_t> share(first, first + static_cast<std::ptrdiff_t>(each));
  sort_almost_sorted(share, [](std::size_t one, std::size_t other) { return one < other; });
  return share;
}

DIST_INLINE bool is_unbound() { return allowed_processors() == processors_of_thread(1); }

}  // namespace detail

DIST_INLINE std::vector<std::size_t> share_of_processors() {
  const Topology places = read_topology(allowed_processors());
  return detail::share_of(places, detail::is_unbound() ? detail::local_processes() : LocalProcesses{});
}

}  // namespace dist
