#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/index_range.hpp>
#include <dist/device/cpu_id.hpp>

namespace dist::detail {

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
  /// Anything that is no such list is an empty one.
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
      ranges_.push_back({first, std::max(last, last + 1)});  // no processor has the largest number
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

/// Names what the processors share: `members(processor)` lists the processors that share the one of `processor`. One
/// that is not even a member itself keeps the name that it has.
template <class Members>
void name_shared(Topology& places, std::size_t CpuId::*name, Members&& members) {
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
  Topology places(processors.size());  // filled by index: everybody compiles this, and no growth of this type
  std::vector<std::size_t> capacities;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::size_t processor = processors[i];
    places[i] = {processor, processor, processor, processors.front(), processors.front()};
    capacities.push_back(source.capacity(processor));
  }
  name_shared(places, &CpuId::core, [&](std::size_t processor) { return source.core(processor); });
  for (CpuId& place : places) place.cache = place.core;  // where no cache is known
  name_shared(places, &CpuId::cache, [&](std::size_t processor) { return source.cache(processor); });
  name_shared(places, &CpuId::node, [&](std::size_t processor) { return source.node(processor); });
  name_shared(places, &CpuId::package, [&](std::size_t processor) { return source.package(processor); });
  rank_speeds(places, capacities);
  return places;
}

}  // namespace dist::detail
