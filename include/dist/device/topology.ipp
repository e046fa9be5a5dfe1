#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include <dist/core/algorithms.hpp>
#include <dist/core/standard_descriptors.hpp>
#include <dist/core/text.hpp>
#include <dist/device/topology.hpp>

namespace dist {

namespace detail {

DIST_INLINE std::string text_of_file(const std::string& name) {
  std::array<char, 32 * 1024> buffer;
  std::size_t filled = 0;
  const int file = above_standard(open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file < 0) return {};
  while (filled < buffer.size()) {
    const ssize_t got = read(file, buffer.data() + filled, buffer.size() - filled);
    if (got <= 0) break;
    filled += static_cast<std::size_t>(got);
  }
  close(file);
  if (filled == buffer.size()) return {};
  if (filled > 0 && buffer[filled - 1] == '\n') --filled;
  return {buffer.data(), filled};
}

/// A machine as described by Linux in files. Missing or invalid information is an empty list or 0.
class SystemFiles {
 public:
  explicit SystemFiles(const std::string& root) : root_(root) {
    constexpr std::size_t most_nodes = 4096;
    const ProcessorList online{text_of("/node/online")};
    for (const auto& [first, end] : online.ranges())
      for (std::size_t node = first; node < end && nodes_.size() < most_nodes; ++node)
        nodes_.push_back(ProcessorList{text_of(concat("/node/node", node, "/cpulist"))});
  }

  // Uses only the lists: core_id is unique per package on some machines, and per cluster of cores on others.
  [[nodiscard]] ProcessorList core(std::size_t processor) const {
    return either(processor, "/topology/core_cpus_list", "/topology/thread_siblings_list");
  }
  [[nodiscard]] ProcessorList package(std::size_t processor) const {
    return either(processor, "/topology/package_cpus_list", "/topology/core_siblings_list");
  }
  [[nodiscard]] ProcessorList node(std::size_t processor) const {
    for (const ProcessorList& each : nodes_)
      if (each.has(processor)) return each;
    return ProcessorList{""};
  }
  [[nodiscard]] ProcessorList cache(std::size_t processor) const {
    constexpr std::size_t most_caches = 16;
    std::size_t last_level = 0;
    std::string shared_by;
    for (std::size_t index = 0; index < most_caches; ++index) {
      const std::string cache = concat("/cpu/cpu", processor, "/cache/index", index);
      const std::size_t level = number(cache + "/level");
      if (level == 0) break;
      if (level <= last_level || text_of(cache + "/type") == "Instruction") continue;
      last_level = level;
      shared_by = cache + "/shared_cpu_list";
    }
    return ProcessorList{last_level == 0 ? std::string{} : text_of(shared_by)};
  }
  /// The relative computing speed, in the scheduler's units.
  [[nodiscard]] std::size_t capacity(std::size_t processor) const {
    return number(concat("/cpu/cpu", processor, "/cpu_capacity"));
  }

 private:
  /// Reads the older name if the newer one is missing, as older kernels only have that, and future ones may drop it.
  [[nodiscard]] ProcessorList either(std::size_t processor, const char* newer, const char* older) const {
    const std::string folder = concat("/cpu/cpu", processor);
    ProcessorList list{text_of(folder + newer)};
    return list.ranges().empty() ? ProcessorList{text_of(folder + older)} : list;
  }

  [[nodiscard]] std::size_t number(const std::string& file) const {
    const ProcessorList list{text_of(file)};
    const bool one = list.ranges().size() == 1 && list.ranges()[0].size() == 1;
    return one ? list.ranges()[0].begin : 0;
  }

  [[nodiscard]] std::string text_of(const std::string& name) const { return text_of_file(root_ + name); }

  std::string root_;
  std::vector<ProcessorList> nodes_;
};

}  // namespace detail

DIST_INLINE Topology read_topology(std::span<const std::size_t> processors, const std::string& root) {
  return detail::topology_from(processors, detail::SystemFiles{root});
}

DIST_INLINE std::vector<std::size_t> listed_processors(std::span<const std::size_t> processors,
                                                       const std::string& file) {
  const detail::ProcessorList list{detail::text_of_file(file)};
  std::vector<std::size_t> listed;
  for (const std::size_t processor : processors)
    if (list.has(processor)) listed.push_back(processor);
  return listed;
}

DIST_INLINE std::vector<std::size_t> placement_order(const Topology& places) {
  struct Core {
    std::vector<std::size_t> threads;  // by position
    detail::ProcessorKey key{};        // sort key of the cores
  };
  std::vector<Core> cores;
  std::size_t highest_speed = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    std::size_t core = 0;
    while (core < cores.size() && places[cores[core].threads.front()].core != places[i].core) ++core;
    if (core == cores.size()) cores.emplace_back();
    cores[core].threads.push_back(i);
    highest_speed = std::max(highest_speed, places[i].speed);
  }
  constexpr std::array levels{&CpuId::package, &CpuId::node, &CpuId::cache};
  for (Core& core : cores) {
    const CpuId& place = places[core.threads.front()];
    std::size_t* key = core.key.data();
    *key++ = highest_speed - place.speed;
    for (std::size_t level = 0; level < levels.size(); ++level) {
      std::size_t together = 0;
      for (const Core& other : cores) {
        const CpuId& peer = places[other.threads.front()];
        bool near = peer.speed == place.speed;
        for (std::size_t outer = 0; outer <= level; ++outer) near = near && peer.*levels[outer] == place.*levels[outer];
        if (near) ++together;
      }
      *key++ = cores.size() - together;
      *key++ = place.*levels[level];
    }
    *key = core.threads.front();
  }
  detail::sort_almost_sorted(cores, [](const Core& a, const Core& b) { return a.key < b.key; });
  std::vector<std::size_t> order;
  for (std::size_t thread = 0; order.size() < places.size(); ++thread)
    for (const Core& core : cores)
      if (thread < core.threads.size()) order.push_back(core.threads[thread]);
  return order;
}

}  // namespace dist
