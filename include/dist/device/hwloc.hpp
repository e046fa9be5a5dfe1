#pragma once

#if !__has_include(<hwloc.h>)
#error "<hwloc.h> of hwloc was not found: install libhwloc-dev, and link dist::hwloc (without CMake: -lhwloc)"
#endif

#include <hwloc.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <dist/core/error.hpp>
#include <dist/device/affinity.hpp>
#include <dist/device/cpu.hpp>
#include <dist/device/topology.hpp>

namespace dist {

namespace detail {

/// A machine topology from hwloc.
class HwlocMachine {
 public:
  HwlocMachine() {
    hwloc_topology_t machine = nullptr;
    const bool created = hwloc_topology_init(&machine) == 0;
    machine_.reset(created ? machine : nullptr);
    if (!created || hwloc_topology_load(machine) != 0)
      throw Error("hwloc cannot read the topology of this machine", std::strerror(errno),
                  "Correct the environment variables that begin with HWLOC_, or do not use the devices of hwloc");
  }

  /// The processors below an object, possibly none.
  struct Members {
    hwloc_const_bitmap_t set;
    [[nodiscard]] bool has(std::size_t processor) const {
      return set != nullptr && hwloc_bitmap_isset(set, static_cast<unsigned>(processor)) != 0;
    }
  };

  [[nodiscard]] Members core(std::size_t processor) const { return above(processor, HWLOC_OBJ_CORE); }
  [[nodiscard]] Members package(std::size_t processor) const { return above(processor, HWLOC_OBJ_PACKAGE); }
  [[nodiscard]] Members node(std::size_t processor) const {
    const hwloc_obj_t unit = find(processor);
    const int node = unit == nullptr ? -1 : hwloc_bitmap_first(unit->nodeset);
    return of(node < 0 ? nullptr : hwloc_get_numanode_obj_by_os_index(machine_.get(), static_cast<unsigned>(node)));
  }
  [[nodiscard]] Members cache(std::size_t processor) const {
    hwloc_obj_t last = nullptr;
    for (hwloc_obj_t each = find(processor); each != nullptr; each = each->parent)
      if (hwloc_obj_type_is_dcache(each->type) != 0) last = each;
    return of(last);
  }
  /// hwloc only ranks the kinds of cores; doubling the value for each rank separates them.
  [[nodiscard]] std::size_t capacity(std::size_t processor) const {
    const hwloc_obj_t unit = find(processor);
    const int kind = unit == nullptr ? -1 : hwloc_cpukinds_get_by_cpuset(machine_.get(), unit->cpuset, 0);
    int rank = -1;
    if (kind < 0 ||
        hwloc_cpukinds_get_info(machine_.get(), static_cast<unsigned>(kind), nullptr, &rank, nullptr, nullptr, 0) != 0)
      return 0;
    constexpr int most_ranks = 60;
    return rank < 0 ? 0 : std::size_t{1} << std::min(rank, most_ranks);
  }

 private:
  struct Destroy {
    void operator()(hwloc_topology_t machine) const noexcept { hwloc_topology_destroy(machine); }
  };

  [[nodiscard]] hwloc_obj_t find(std::size_t processor) const {
    return hwloc_get_pu_obj_by_os_index(machine_.get(), static_cast<unsigned>(processor));
  }
  [[nodiscard]] Members above(std::size_t processor, hwloc_obj_type_t type) const {
    const hwloc_obj_t unit = find(processor);
    return of(unit == nullptr ? nullptr : hwloc_get_ancestor_obj_by_type(machine_.get(), type, unit));
  }
  static Members of(hwloc_obj_t object) { return {object == nullptr ? nullptr : object->cpuset}; }

  std::unique_ptr<hwloc_topology, Destroy> machine_;
};

}  // namespace detail

/// Returns the topology of `processors` from hwloc: like read_topology, but also for systems other than Linux, and for
/// machines described by HWLOC_XMLFILE or HWLOC_SYNTHETIC. Throws Error if hwloc fails.
[[nodiscard]] inline Topology read_hwloc_topology(std::span<const std::size_t> processors) {
  return detail::topology_from(processors, detail::HwlocMachine{});
}

/// Returns the devices for `replicas` replicas by hwloc's topology, ordered by placement_order, for a strategy's
/// options: `MirroredOptions{.devices = hwloc_devices(2)}`. Throws InvalidArgument unless `replicas` is at least 1 and
/// at most the number of devices, Error if hwloc fails.
[[nodiscard]] inline std::vector<std::string> hwloc_devices(std::size_t replicas) {
  const Topology places = read_hwloc_topology(allowed_processors());
  if (replicas == 0 || replicas > places.size())
    throw InvalidArgument("hwloc cannot place that many replicas",
                          concat(replicas, " were requested, there are ", places.size(), " devices"),
                          "Request at most one replica per device, or give the strategy only a number of replicas");
  std::vector<std::string> names;
  for (const std::size_t device : placement_order(places)) names.push_back(Cpu::device_name(device));
  names.resize(replicas);
  return names;
}

}  // namespace dist
