#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>

namespace dist {

/// The position of a processor in the machine. Processors that share a resource have the same number for it: the first
/// of the given processors that share it.
struct CpuId {
  std::size_t processor;  ///< the system's number
  std::size_t core;       ///< it is a hardware thread of this core
  std::size_t cache;      ///< last-level cache
  std::size_t node;       ///< NUMA node
  std::size_t package;    ///< socket
  std::size_t speed = 0;  ///< rank of the kind of core, 0 for the slowest
  friend bool operator==(const CpuId&, const CpuId&) = default;
};

/// The positions of the given processors, in their order.
using Topology = std::vector<CpuId>;

namespace detail {

/// Sort key of processors, in lexicographic order; unused elements are 0.
using ProcessorKey = std::array<std::size_t, 8>;

/// Insertion sort for nearly sorted values, such as the system's processor lists: one pass, and much less code to
/// compile than std::sort.
template <class T, class Less>
void sort_almost_sorted(std::vector<T>& values, Less&& less) {
  for (std::size_t i = 1; i < values.size(); ++i)
    for (std::size_t at = i; at > 0 && less(values[at], values[at - 1]); --at) std::swap(values[at], values[at - 1]);
}

/// Parses a number at the start of `rest` and removes it. Returns false without a number, or if it is too large.
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

/// A processor list in the system's notation, such as "0-3,8,10-11".
class ProcessorList {
 public:
  /// An invalid list is empty.
  explicit ProcessorList(std::string_view list) {
    while (!list.empty()) {
      std::size_t first = 0;
      bool valid = take_number(list, first);
      std::size_t last = first;
      if (valid && list.starts_with('-')) {
        list.remove_prefix(1);
        valid = take_number(list, last);
      }
      const bool goes_on = list.size() > 1 && list.front() == ',';
      if (!valid || last < first || !(goes_on || list.empty())) {
        ranges_.clear();
        return;
      }
      ranges_.push_back({first, std::max(last, last + 1)});  // the largest number is never a processor
      if (goes_on) list.remove_prefix(1);
    }
  }

  [[nodiscard]] bool has(std::size_t processor) const {
    for (const IndexRange& range : ranges_)
      if (range.begin <= processor && processor < range.end) return true;
    return false;
  }
  [[nodiscard]] const std::vector<IndexRange>& ranges() const noexcept { return ranges_; }

 private:
  std::vector<IndexRange> ranges_;
};

/// Numbers a shared resource: `members(processor)` lists the processors that share it with `processor`. Processors that
/// are not in their own list keep their number.
template <class Members>
void name_shared(Topology& places, std::size_t CpuId::*name, Members&& members) {
  std::vector<std::size_t> named(places.size());  // 0 or 1; avoids instantiating std::vector<bool>
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

/// Ranks the kinds of cores by speed. Cores within an eighth of the fastest of a kind are of that kind: a few percent
/// do not justify leaving a cache. If any capacity is unknown, all cores are equal.
inline void rank_speeds(Topology& places, const std::vector<std::size_t>& capacities) {
  std::vector<std::size_t> fastest;  // per kind
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

/// Reads the topology from `source`. Without information, each processor is a separate core with a separate cache, and
/// there is one node and one package.
template <class Source>
[[nodiscard]] Topology topology_from(std::span<const std::size_t> processors, const Source& source) {
  Topology places(processors.size());  // filled by index, because this type's growth is expensive to compile
  std::vector<std::size_t> capacities;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::size_t processor = processors[i];
    places[i] = {processor, processor, processor, processors.front(), processors.front()};
    capacities.push_back(source.capacity(processor));
  }
  name_shared(places, &CpuId::core, [&](std::size_t processor) { return source.core(processor); });
  for (CpuId& place : places) place.cache = place.core;  // default if the cache is unknown
  name_shared(places, &CpuId::cache, [&](std::size_t processor) { return source.cache(processor); });
  name_shared(places, &CpuId::node, [&](std::size_t processor) { return source.node(processor); });
  name_shared(places, &CpuId::package, [&](std::size_t processor) { return source.package(processor); });
  rank_speeds(places, capacities);
  return places;
}

/// Returns the text of a file without the final newline; empty if it cannot be read, or is too long for a list.
[[nodiscard]] std::string text_of_file(const std::string& name);

}  // namespace detail

/// Returns the topology of `processors` from the system's files under `root`. If they are missing (in containers, old
/// kernels) or invalid, each processor is a separate core on one node of one package; this is not an error.
[[nodiscard]] Topology read_topology(std::span<const std::size_t> processors,
                                     const std::string& root = "/sys/devices/system");

/// Filters `processors` by the list ("0-3,8") in a system file, in their order. Returns none without a list.
[[nodiscard]] std::vector<std::size_t> listed_processors(std::span<const std::size_t> processors,
                                                         const std::string& file);

/// Returns an order of the positions in `places` whose first R entries are a good choice for R replicas:
/// - a core gets a second replica only after all cores have one, and faster kinds of cores are first;
/// - replicas are near each other: all cores of a cache before the next cache of the node, all of a node before the
///   next node, all of a package before the next package, starting where there are most cores;
/// - otherwise the order is unchanged.
///
/// Reductions within a cache are several times faster. Work that is limited by memory bandwidth may be faster on all
/// nodes: then name the devices.
[[nodiscard]] std::vector<std::size_t> placement_order(const Topology& places);

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/device/topology.ipp>
#endif
