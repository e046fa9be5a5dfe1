#pragma once

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>

#include <dist/core/algorithms.hpp>
#include <dist/core/text.hpp>
#include <dist/device/affinity.hpp>
#include <dist/device/topology.hpp>

namespace dist {

namespace detail {

DIST_INLINE std::vector<std::size_t> processors_of_thread(int id) {
  constexpr std::size_t most = std::size_t{1} << 20;
  std::vector<std::size_t> processors;
  for (std::size_t room = CPU_SETSIZE; room <= most; room *= 2) {
    ProcessorMask mask{room};
    if (sched_getaffinity(id, mask.bytes(), mask.system()) == 0) {
      for (std::size_t processor = 0; processor < mask.capacity(); ++processor)
        if (mask.has(processor)) processors.push_back(processor);
      break;
    }
    if (errno != EINVAL) break;  // EINVAL: the mask was too small
  }
  if (processors.empty()) processors.push_back(0);
  return processors;
}

}  // namespace detail

DIST_INLINE std::vector<std::size_t> allowed_processors() { return detail::processors_of_thread(getpid()); }

DIST_INLINE void bind_this_thread(std::span<const std::size_t> processors) {
  if (processors.empty()) return;
  detail::ProcessorMask mask{*std::max_element(processors.begin(), processors.end())};
  for (const std::size_t processor : processors) mask.set(processor);
  static_cast<void>(pthread_setaffinity_np(pthread_self(), mask.bytes(), mask.system()));
}

DIST_INLINE void pin_this_thread(std::size_t processor) { bind_this_thread({&processor, 1}); }

DIST_INLINE ThreadBinding::ThreadBinding(std::span<const std::size_t> processors)
    : thread_(pthread_self()), before_(detail::processors_of_thread(0)) {
  bind_this_thread(processors);
  bound_ = detail::processors_of_thread(0);
}
DIST_INLINE ThreadBinding::~ThreadBinding() {
  if (pthread_equal(thread_, pthread_self()) != 0 && detail::processors_of_thread(0) == bound_)
    bind_this_thread(before_);
}

DIST_INLINE void move_this_thread(std::size_t processor) noexcept {
  constexpr std::size_t bits = 8 * sizeof(unsigned long);
  std::array<unsigned long, 8192 / bits> allowed{};  // the maximum of Linux
  std::array<unsigned long, allowed.size()> there{};
  const auto system = [](auto& mask) { return reinterpret_cast<cpu_set_t*>(mask.data()); };
  if (processor >= 8192 || sched_getaffinity(0, sizeof allowed, system(allowed)) != 0) return;
  there[processor / bits] = allowed[processor / bits] & 1UL << processor % bits;
  if (there[processor / bits] == 0 || sched_setaffinity(0, sizeof there, system(there)) != 0) return;
  static_cast<void>(sched_setaffinity(0, sizeof allowed, system(allowed)));
}

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
  // Last, because srun may have started another launcher.
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

namespace detail {

inline constexpr std::size_t no_quota = std::numeric_limits<std::size_t>::max();

/// Divides a quota by a period, both as text in microseconds. Returns `no_quota` unless both are positive numbers.
[[nodiscard]] inline std::size_t whole_processors(const std::string& quota, const std::string& period) {
  const long long time = std::strtoll(quota.c_str(), nullptr, 10);
  const long long of = std::strtoll(period.c_str(), nullptr, 10);
  if (time <= 0 || of <= 0) return no_quota;
  return static_cast<std::size_t>(std::max(time / of, 1LL));
}

/// Returns the limit of one control group, whose files are in `folder`.
[[nodiscard]] inline std::size_t quota_of_group(const std::string& folder) {
  const std::string both = text_of_file(folder + "/cpu.max");  // "200000 100000", or "max 100000"
  const std::size_t space = both.find(' ');
  if (space != std::string::npos) return whole_processors(both.substr(0, space), both.substr(space));
  return whole_processors(text_of_file(folder + "/cpu.cfs_quota_us"), text_of_file(folder + "/cpu.cfs_period_us"));
}

}  // namespace detail

DIST_INLINE std::size_t processor_quota(const std::string& root) {
  std::size_t least = detail::no_quota;
  // Lines like "0::/group" (v2) or "4:cpu,cpuacct:/group" (v1).
  const std::string groups = detail::text_of_file(root + "/proc/self/cgroup");
  std::string_view rest = groups;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string among = concat(",", controllers, ",");
    if (!controllers.empty() && among.find(",cpu,") == std::string::npos) continue;
    const std::string hierarchy = concat(root, "/sys/fs/cgroup", controllers.empty() ? "" : "/", controllers);
    // In a container, the process's own group may be mounted as the root, so missing groups are skipped.
    for (std::string group{line.substr(second + 1)};; group.resize(group.rfind('/'))) {
      least = std::min(least, detail::quota_of_group(hierarchy + group));
      if (group.rfind('/') == std::string::npos) break;
    }
  }
  return least;
}

}  // namespace dist
