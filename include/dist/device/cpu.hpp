#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/text.hpp>
#include <dist/device/affinity.hpp>
#include <dist/device/arena.hpp>
#include <dist/device/replica_threads.hpp>

namespace dist {

/// The host's processors as devices: one replica is one thread, its memory is the host's.
struct Cpu {
  static constexpr std::string_view name = "Cpu";
  using Memory = Arena;
  using Threads = ReplicaThreads;

  /// As many as this process may use.
  [[nodiscard]] static std::size_t count() { return allowed_processors().size(); }

  /// "/cpu:0"
  [[nodiscard]] static std::string device_name(std::size_t replica) { return text("/cpu:", replica); }

  /// Calls `body(i)` for every index of the range, in one loop that the compiler may vectorise: the calls must not depend
  /// on each other.
  template <class Body>
  static DIST_ALWAYS_INLINE void for_each(IndexRange range, Body&& body) {
    DIST_INDEPENDENT_LOOP
    for (std::size_t i = range.begin; i < range.end; ++i) body(i);
  }
};

}  // namespace dist
