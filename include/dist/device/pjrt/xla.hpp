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

/// The devices of a PJRT plugin, TPUs for instance, for which XLA compiles whole steps: `strategy.compile(step)`. They are
/// those of the process's client (pjrt::process_client).
///
/// Variables lie in ManagedMemory, so code of the host reads and writes them as it does under Cpu. What replica functions
/// do in `strategy.run` is done by threads of the host; what is compiled is done by the devices.
struct Xla {
  static constexpr std::string_view name = "Xla";
  /// As it stands in device names.
  static constexpr std::string_view type = "xla";
  /// See CompilesSteps.
  static constexpr bool compiles_steps = true;
  using Memory = pjrt::ManagedMemory;
  using Space = HostMemory;
  template <class T>
  using Span = std::span<T>;
  /// Of the host: work on the devices is in compiled steps.
  using Queue = Cpu::Queue;
  using Queues = Cpu::Queues;

  /// As many as the process's client has. Throws what process_client throws.
  [[nodiscard]] static std::size_t count() { return pjrt::process_client().devices().size(); }
  /// The first devices, one for each replica: a program has them all for itself.
  [[nodiscard]] static std::vector<std::size_t> placement(std::size_t replicas) {
    std::vector<std::size_t> devices(std::min(replicas, count()));
    std::iota(devices.begin(), devices.end(), std::size_t{0});
    return devices;
  }
  /// The system places the threads of the host.
  [[nodiscard]] static std::vector<std::size_t> processors(std::span<const std::size_t>) { return {}; }
  /// "/xla:0"
  [[nodiscard]] static std::string device_name(std::size_t device) { return concat("/", type, ":", device); }
  /// Throws the InvalidArgument of `device`, which names no device of the client.
  [[noreturn]] static void refuse(std::string_view device) {
    throw InvalidArgument(concat("There is no device ", quoted(device)),
                          concat("the platform ", quoted(pjrt::process_client().platform()), " has ", count(),
                                 count() == 1 ? " device" : " devices", ", numbered from /xla:0"),
                          "Name another device, or ask the plugin for more: its plugin for CPUs takes "
                          "DIST_PJRT_VALUES=cpu_device_count=4");
  }
};

}  // namespace dist
