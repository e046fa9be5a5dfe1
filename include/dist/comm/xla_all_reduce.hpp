#pragma once

#include <string_view>

#include <dist/comm/memory/shared_memory_all_reduce.hpp>
#include <dist/device/pjrt/xla.hpp>

namespace dist {

/// The policy of strategies on Xla devices: in a compiled step XLA's own collectives reduce, on the devices. What replica
/// functions that are run reduce lies in memory of the host, and is reduced there as by SharedMemoryAllReduce.
struct XlaAllReduce {
  static constexpr std::string_view name = "XlaAllReduce";
  using DefaultDevice = Xla;

  /// Whether it works between members like these.
  template <class C>
  static constexpr bool fits = SharedMemoryAllReduce::fits<C>;

  template <class C>
  using On = SharedMemoryAllReduce::On<C>;
};

}  // namespace dist
