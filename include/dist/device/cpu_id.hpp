#pragma once

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace dist {

/// Where a processor stands in the machine. Processors that share something name the same one: the first of those that
/// were asked about.
struct CpuId {
  std::size_t processor;  ///< the system's number
  std::size_t core;       ///< of which it is a hardware thread
  std::size_t cache;      ///< the last level of cache
  std::size_t node;       ///< of memory (NUMA)
  std::size_t package;    ///< the socket
  std::size_t speed = 0;  ///< of the kind of core: 0 for the slowest kind
  friend bool operator==(const CpuId&, const CpuId&) = default;
};

/// In the order in which the processors were asked about.
using Topology = std::vector<CpuId>;

namespace detail {

/// What processors are sorted by: the first number counts most, and what is not needed stays 0.
using ProcessorKey = std::array<std::size_t, 8>;

/// Sorts values that stand nearly as they should, as processors do in the system's lists: one pass then, and a fraction
/// of the code of std::sort for the compiler of everybody who includes this.
template <class T, class Less>
void sort_almost_sorted(std::vector<T>& values, Less&& less) {
  for (std::size_t i = 1; i < values.size(); ++i)
    for (std::size_t at = i; at > 0 && less(values[at], values[at - 1]); --at) std::swap(values[at], values[at - 1]);
}

}  // namespace detail

}  // namespace dist
