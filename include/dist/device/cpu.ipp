#pragma once

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/device/affinity.hpp>
#include <dist/device/cpu.hpp>
#include <dist/device/topology.hpp>

namespace dist {

DIST_INLINE std::size_t Cpu::count() { return allowed_processors().size(); }

DIST_INLINE std::size_t Cpu::most_at_once(const std::string& root) { return std::min(count(), processor_quota(root)); }

DIST_INLINE std::vector<std::size_t> Cpu::placement(std::size_t replicas) {
  const std::vector<std::size_t> allowed = allowed_processors();
  const std::vector<std::size_t> share = share_of_processors();
  std::vector<std::size_t> processors;
  for (const std::size_t position : share) processors.push_back(allowed[position]);
  std::vector<std::size_t> devices = placement_order(read_topology(processors));
  devices.resize(std::min(replicas, devices.size()));
  for (std::size_t& device : devices) device = share[device];
  return devices;
}

DIST_INLINE std::vector<std::size_t> Cpu::processors(std::span<const std::size_t> devices, const std::string& root) {
  const std::vector<std::size_t> allowed = allowed_processors();
  if (processor_quota(root) < allowed.size()) return {};
  std::vector<std::size_t> chosen;
  for (std::size_t replica = 0; replica < devices.size(); ++replica) {
    if (std::find(devices.begin(), devices.begin() + static_cast<std::ptrdiff_t>(replica), devices[replica]) !=
        devices.begin() + static_cast<std::ptrdiff_t>(replica))
      return {};
    chosen.push_back(allowed[devices[replica] % allowed.size()]);
  }
  return chosen;
}

DIST_INLINE std::string Cpu::device_name(std::size_t device) { return concat("/", type, ":", device); }

DIST_COLD void Cpu::refuse(std::string_view device) {
  throw InvalidArgument(concat("Device '", device, "' does not exist"),
                        concat("this process may use ", count(), " of that type, numbered from /", type, ":0"),
                        "Name an existing device, or let the process use more processors");
}

}  // namespace dist
