#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/text.hpp>

namespace dist {

/// Where a processor stands in the machine. Processors that share something name the same one: the first of those that
/// were asked about.
struct ProcessorPlace {
  std::size_t processor;  ///< the system's number
  std::size_t core;       ///< of which it is a hardware thread
  std::size_t cache;      ///< the last level of cache
  std::size_t node;       ///< of memory (NUMA)
  std::size_t package;    ///< the socket
  std::size_t speed = 0;  ///< of the kind of core: 0 for the slowest kind
  friend bool operator==(const ProcessorPlace&, const ProcessorPlace&) = default;
};

/// In the order in which the processors were asked about.
using Topology = std::vector<ProcessorPlace>;

namespace detail {

/// Takes the number off the front of `rest`. Returns false where there is none, or one too large.
[[nodiscard]] inline bool take_number(std::string_view& rest, std::size_t& number) {
  const std::size_t before = rest.size();
  number = 0;
  for (; !rest.empty() && rest.front() >= '0' && rest.front() <= '9'; rest.remove_prefix(1)) {
    const auto digit = static_cast<std::size_t>(rest.front() - '0');
    if (number > (std::numeric_limits<std::size_t>::max() - digit) / 10) return false;
    number = 10 * number + digit;
  }
  return rest.size() < before;
}

/// Processors in the system's notation, such as "0-3,8,10-11".
class ProcessorList {
 public:
  /// Both ends included.
  struct Range {
    std::size_t first;
    std::size_t last;
  };

  /// Anything that is no such list is an empty one.
  explicit ProcessorList(std::string_view list) {
    while (!list.empty()) {
      Range range{};
      bool valid = take_number(list, range.first);
      range.last = range.first;
      if (valid && list.starts_with('-')) {
        list.remove_prefix(1);
        valid = take_number(list, range.last);
      }
      const bool goes_on = list.size() > 1 && list.front() == ',';
      if (!valid || range.last < range.first || !(goes_on || list.empty())) {
        ranges_.clear();
        return;
      }
      ranges_.push_back(range);
      if (goes_on) list.remove_prefix(1);
    }
  }

  [[nodiscard]] bool has(std::size_t processor) const {
    for (const Range& range : ranges_)
      if (range.first <= processor && processor <= range.last) return true;
    return false;
  }
  [[nodiscard]] const std::vector<Range>& ranges() const noexcept { return ranges_; }

 private:
  std::vector<Range> ranges_;
};

/// A machine as Linux describes it in files. What is not there, or not as expected, is an empty list or 0.
class SystemFiles {
 public:
  explicit SystemFiles(const std::string& root) : root_(root) {
    constexpr std::size_t most_nodes = 4096;
    const ProcessorList online{text_of("/node/online")};
    for (const auto& [first, last] : online.ranges())
      for (std::size_t node = first; node <= last && nodes_.size() < most_nodes; ++node)
        nodes_.push_back(ProcessorList{text_of(text("/node/node", node, "/cpulist"))});
  }

  // From the lists only: core_id is unique within a package on some machines, and within a cluster of cores on others.
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
      const std::string cache = text("/cpu/cpu", processor, "/cache/index", index);
      const std::size_t level = number(cache + "/level");
      if (level == 0) break;
      if (level <= last_level || text_of(cache + "/type") == "Instruction") continue;
      last_level = level;
      shared_by = cache + "/shared_cpu_list";
    }
    return ProcessorList{last_level == 0 ? std::string{} : text_of(shared_by)};
  }
  /// In the scheduler's units: what the core computes in a time, next to the others.
  [[nodiscard]] std::size_t capacity(std::size_t processor) const {
    return number(text("/cpu/cpu", processor, "/cpu_capacity"));
  }

 private:
  /// The older of the two names is all that older kernels have, and newer ones may drop it.
  [[nodiscard]] ProcessorList either(std::size_t processor, const char* newer, const char* older) const {
    const std::string folder = text("/cpu/cpu", processor);
    ProcessorList list{text_of(folder + newer)};
    return list.ranges().empty() ? ProcessorList{text_of(folder + older)} : list;
  }

  [[nodiscard]] std::size_t number(const std::string& file) const {
    const ProcessorList list{text_of(file)};
    const bool one = list.ranges().size() == 1 && list.ranges()[0].first == list.ranges()[0].last;
    return one ? list.ranges()[0].first : 0;
  }

  /// What stands in a file, without the end of the line; nothing if it is longer than any list.
  [[nodiscard]] std::string text_of(const std::string& name) const {
    std::array<char, 32 * 1024> buffer;
    std::size_t filled = 0;
    const int file = open((root_ + name).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
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

  std::string root_;
  std::vector<ProcessorList> nodes_;
};

/// What processors are sorted by: the first number counts most, and what is not needed stays 0.
using ProcessorKey = std::array<std::size_t, 8>;

/// Sorts values that stand nearly as they should, as processors do in the system's lists: one pass then, and a fraction
/// of the code of std::sort for the compiler of everybody who includes this.
template <class T, class Less>
void sort_almost_sorted(std::vector<T>& values, Less&& less) {
  for (std::size_t i = 1; i < values.size(); ++i)
    for (std::size_t at = i; at > 0 && less(values[at], values[at - 1]); --at) std::swap(values[at], values[at - 1]);
}

/// Names what the processors share: `members(processor)` lists the processors that share the one of `processor`. One
/// that is not even a member itself keeps the name that it has.
template <class Members>
void name_shared(Topology& places, std::size_t ProcessorPlace::*name, Members&& members) {
  std::vector<std::size_t> named(places.size());  // 0 or 1: everybody has this type, and few std::vector<bool>
  for (std::size_t first = 0; first < places.size(); ++first) {
    if (named[first] != 0) continue;
    const auto list = members(places[first].processor);
    if (!list.has(places[first].processor)) continue;
    for (std::size_t i = first; i < places.size(); ++i) {
      if (named[i] != 0 || !list.has(places[i].processor)) continue;
      places[i].*name = places[first].processor;
      named[i] = 1;
    }
  }
}

/// Ranks the kinds of cores. Cores within an eighth of the fastest of their kind are of that kind: makers prefer single
/// cores by a few percent, which is not worth leaving a cache for. If only one capacity is unknown, all are alike.
inline void rank_speeds(Topology& places, const std::vector<std::size_t>& capacities) {
  std::vector<std::size_t> fastest;  // of each kind
  for (std::size_t slower_than = std::numeric_limits<std::size_t>::max();;) {
    std::size_t next = 0;
    for (const std::size_t capacity : capacities) {
      if (capacity == 0) return;
      if (capacity < slower_than) next = std::max(next, capacity);
    }
    if (next == 0) break;
    fastest.push_back(next);
    slower_than = next - next / 8;
  }
  for (std::size_t i = 0; i < places.size(); ++i)
    for (const std::size_t kind : fastest)
      if (kind < capacities[i]) ++places[i].speed;
}

/// What a source knows: of what it does not, each processor is a core of its own, with a cache of its own, and there is
/// one node and one package.
template <class Source>
[[nodiscard]] Topology topology_from(std::span<const std::size_t> processors, const Source& source) {
  Topology places;
  std::vector<std::size_t> capacities;
  for (const std::size_t processor : processors) {
    places.push_back({processor, processor, processor, processors.front(), processors.front()});
    capacities.push_back(source.capacity(processor));
  }
  name_shared(places, &ProcessorPlace::core, [&](std::size_t processor) { return source.core(processor); });
  for (ProcessorPlace& place : places) place.cache = place.core;  // where no cache is known
  name_shared(places, &ProcessorPlace::cache, [&](std::size_t processor) { return source.cache(processor); });
  name_shared(places, &ProcessorPlace::node, [&](std::size_t processor) { return source.node(processor); });
  name_shared(places, &ProcessorPlace::package, [&](std::size_t processor) { return source.package(processor); });
  rank_speeds(places, capacities);
  return places;
}

}  // namespace detail

/// What `processors` share, as the system tells it in the files under `root`. Where it tells nothing (a container, an
/// older kernel) or nothing sensible, each processor is a core of its own, on one node of one package; that is no
/// error.
[[nodiscard]] inline Topology read_topology(std::span<const std::size_t> processors,
                                            const std::string& root = "/sys/devices/system") {
  return detail::topology_from(processors, detail::SystemFiles{root});
}

/// An order of `places`, by their positions, of which any first R are a good choice for R replicas:
/// - a core takes a second replica only after every core has one, and faster kinds of cores come first;
/// - replicas are near each other: the cores of one cache are taken before the next cache of the same node, those of one
///   node before the next node, those of one package before the next package, and where there are most cores first;
/// - what nothing distinguishes stays in its order.
///
/// Near each other, because replicas meet in memory several times per step, and sums that stay within one cache are a
/// multiple faster than what comes from another. Work that waits for memory rather than for its peers may want the
/// opposite, the bandwidth of all nodes: name the devices then.
[[nodiscard]] inline std::vector<std::size_t> placement_order(const Topology& places) {
  struct Core {
    std::vector<std::size_t> threads;  // by position
    detail::ProcessorKey key{};        // cores are taken in ascending order of it
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
  constexpr std::array levels{&ProcessorPlace::package, &ProcessorPlace::node, &ProcessorPlace::cache};
  for (Core& core : cores) {
    const ProcessorPlace& place = places[core.threads.front()];
    std::size_t* key = core.key.data();
    *key++ = highest_speed - place.speed;
    for (std::size_t level = 0; level < levels.size(); ++level) {
      std::size_t together = 0;
      for (const Core& other : cores) {
        const ProcessorPlace& peer = places[other.threads.front()];
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
