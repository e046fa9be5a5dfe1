#pragma once

#include <cstddef>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/text.hpp>
#include <dist/device/cpu.hpp>
#include <dist/device/pjrt/managed_memory.hpp>

namespace dist {

/// The devices of the process's PJRT client (pjrt::process_client), such as TPUs, for which XLA compiles whole steps:
/// `strategy.compile(step)`.
///
/// Variables are in ManagedMemory, which the host reads and writes as under Cpu. Replica functions in `strategy.run`
/// run in host threads; compiled steps run on the devices.
struct Xla {
  static constexpr std::string_view name = "Xla";
  /// The type in device names.
  static constexpr std::string_view type = "xla";
  /// See CompilesSteps.
  static constexpr bool compiles_steps = true;
  using Memory = pjrt::ManagedMemory;
  using Space = HostMemory;
  template <class T>
  using Span = std::span<T>;
  /// The host's queue: only compiled steps run on the devices.
  using Queue = Cpu::Queue;
  using Queues = Cpu::Queues;

  /// Returns the number of devices of the process's client. Throws the errors of process_client.
  [[nodiscard]] static std::size_t count() { return pjrt::process_client().devices().size(); }
  /// Returns the first devices, one per replica: a program uses them exclusively.
  [[nodiscard]] static std::vector<std::size_t> placement(std::size_t replicas) {
    std::vector<std::size_t> devices(std::min(replicas, count()));
    std::iota(devices.begin(), devices.end(), std::size_t{0});
    return devices;
  }
  /// Returns none, so that the system places the host threads.
  [[nodiscard]] static std::vector<std::size_t> processors(std::span<const std::size_t>) { return {}; }
  /// Returns a name such as "/xla:0".
  [[nodiscard]] static std::string device_name(std::size_t device) { return concat("/", type, ":", device); }
  /// Throws InvalidArgument for `device`, which is not a device of the client.
  [[noreturn]] static void refuse(std::string_view device) {
    throw InvalidArgument(
        concat("Device ", quoted(device), " does not exist"),
        concat("the platform ", quoted(pjrt::process_client().platform()), " has ", count(),
               count() == 1 ? " device" : " devices", ", numbered from /xla:0"),
        "Name another device, or configure more: the plugin for CPUs takes DIST_PJRT_VALUES=cpu_device_count=4");
  }
};

}  // namespace dist
