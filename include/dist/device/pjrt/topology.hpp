#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/text.hpp>
#include <dist/device/pjrt/client.hpp>

namespace dist::pjrt {

/// The devices of all processes that the plugins combine.
struct Topology {
  std::string platform;                    ///< "cpu", "tpu"
  std::vector<DeviceDescription> devices;  ///< in the plugin's order

  /// Returns the number of devices per process rank.
  [[nodiscard]] std::map<std::size_t, std::size_t> devices_of_processes() const {
    std::map<std::size_t, std::size_t> counts;
    for (const DeviceDescription& device : devices) ++counts[device.process];
    return counts;
  }
  /// Returns the extents of the mesh of chips; empty if the plugin does not report coordinates.
  [[nodiscard]] std::vector<std::size_t> mesh() const {
    if (devices.empty()) return {};
    std::vector<std::int64_t> first = devices.front().coordinates, last = first;
    for (const DeviceDescription& device : devices) {
      if (device.coordinates.size() != first.size()) return {};
      for (std::size_t axis = 0; axis < first.size(); ++axis) {
        first[axis] = std::min(first[axis], device.coordinates[axis]);
        last[axis] = std::max(last[axis], device.coordinates[axis]);
      }
    }
    std::vector<std::size_t> extents;
    for (std::size_t axis = 0; axis < first.size(); ++axis)
      extents.push_back(static_cast<std::size_t>(last[axis] - first[axis]) + 1);
    return extents;
  }
};

/// Formats a summary line, and one line per process.
[[nodiscard]] inline std::string to_string(const Topology& topology) {
  const auto counts = topology.devices_of_processes();
  const std::size_t devices = topology.devices.size();
  std::string said = concat(topology.platform, ": ", devices, devices == 1 ? " device" : " devices", " of ",
                            counts.size(), counts.size() == 1 ? " process" : " processes");
  if (const std::vector<std::size_t> mesh = topology.mesh(); !mesh.empty())
    said += concat(", chips in a mesh of ", joined(mesh, "x"));
  for (const auto& [process, count] : counts) {
    said += concat("\nprocess ", process, ":");
    const char* between = " ";
    for (const DeviceDescription& device : topology.devices) {
      if (device.process != process) continue;
      said += concat(between, device.kind, " ", device.id);
      if (!device.coordinates.empty())
        said += concat(" at (", joined(device.coordinates, ", "), "), core ", device.core);
      between = "; ";
    }
  }
  return said;
}

/// Queries the client's plugin. Throws PjrtError.
[[nodiscard]] inline Topology topology_of(const Client& client) {
  const Api& api = client.api();
  auto list = DIST_PJRT_ARGUMENTS(PJRT_Client_Devices_Args);
  list.client = client.get();
  api.call(&PJRT_Api::PJRT_Client_Devices, list, [] { return "to list the devices of all processes"; });
  Topology topology{client.platform(), {}};
  for (PJRT_Device* const device : std::span{list.devices, list.num_devices})
    topology.devices.push_back(detail::description_of(api, device));
  return topology;
}

}  // namespace dist::pjrt
