#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <dist/comm/communication_options.hpp>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/device/pjrt/client.hpp>
#include <dist/device/pjrt/xla.hpp>
#include <dist/strategy/basic_strategy.hpp>
#include <dist/strategy/compile.hpp>
#include <dist/strategy/compiled_step.hpp>
#include <dist/strategy/one_process.hpp>
#include <dist/strategy/thread_replicas.hpp>
#include <dist/variable/store.hpp>

namespace dist {

/// The policy of strategies on Xla devices: XLA's own collectives in compiled steps, and ThreadAllReduce in host memory
/// for replica functions of `run`.
struct XlaAllReduce {
  static constexpr std::string_view name = "XlaAllReduce";
  using DefaultDevice = Xla;

  /// True if it can reduce between members of `C`.
  template <class C>
  static constexpr bool fits = ThreadAllReduce::fits<C>;

  template <class C>
  using On = ThreadAllReduce::On<C>;
};

/// The devices of a Tpu's replicas. By default, one replica on each device of the plugin.
struct TpuOptions {
  /// The shared library of the PJRT plugin, one per process. Empty: DIST_PJRT_PLUGIN or TPU_LIBRARY_PATH, else the
  /// active Python environment's (pjrt::plugin_path).
  std::string plugin = {};
  /// One replica on each of these, the first devices in order: {"/xla:0", "/xla:1"}. Empty: `replicas` sets the number.
  std::vector<std::string> devices = {};
  /// Number of replicas, on the first devices.
  std::optional<std::size_t> replicas = std::nullopt;
  /// Options of collectives in replica functions of `run`.
  CommunicationOptions communication = {};
};

namespace detail {

/// Checks that the devices compile steps, with one error message; `Checked` are then valid.
template <class Device>
struct TpuDevices {
  static constexpr bool compile_steps = CompilesSteps<Device>;
  static_assert(compile_steps,
                "Tpu needs devices that steps can be compiled for: use dist::Tpu<>, or Mirrored<ThreadAllReduce> with "
                "these devices");
  using Checked = std::conditional_t<compile_steps, Device, Xla>;
};

}  // namespace detail

/// Synchronous training on TPUs, and other devices with a PJRT plugin (spec A24): one replica per device, each with a
/// copy of every variable, and steps that XLA compiles as a whole: `strategy.compile(step)` returns a CompiledStep.
/// `run` executes functions in host threads instead, on the same variables.
///
/// Tested only with XLA's plugin for CPUs, not on a TPU.
template <class DeviceType = Xla>
class Tpu : public BasicStrategy<Tpu<DeviceType>,
                                 ThreadReplicas<XlaAllReduce, typename detail::TpuDevices<DeviceType>::Checked>,
                                 OneProcess, MirroredStore> {
 public:
  /// Places one replica on each device of the plugin. All constructors throw the errors of pjrt::process_client, such
  /// as NoPlugin; InvalidArgument for too many replicas, and for other devices than the first; OutOfMemory if the
  /// system lacks threads or address space.
  Tpu() : Tpu(TpuOptions{}) {}
  /// Places `replicas` replicas on the first devices of the plugin.
  explicit Tpu(std::size_t replicas) : Tpu(TpuOptions{.replicas = replicas}) {}
  /// Places the replicas according to `options`.
  explicit Tpu(const TpuOptions& options) : Tpu::BasicStrategy(threaded(options)) {
    detail::require_first_devices(*this);
  }

  /// "Tpu<Xla>: 2 replicas on /xla:0 /xla:1, platform tpu"
  [[nodiscard]] std::string describe() const {
    return concat("Tpu<", DeviceType::name, ">: ", this->replicas_part().describe(), ", platform ",
                  this->template memory_on<DeviceType>()->client().platform());
  }

 private:
  [[nodiscard]] static MirroredOptions threaded(const TpuOptions& options) {
    const std::size_t devices = pjrt::process_client(options.plugin).devices().size();
    if (options.replicas.value_or(0) > devices)
      throw InvalidArgument(
          "A Tpu has fewer devices than replicas",
          concat(*options.replicas, " replicas were requested, and the platform ",
                 quoted(pjrt::process_client().platform()), " has ", devices, devices == 1 ? " device" : " devices"),
          "Request fewer replicas, or more devices from the plugin: XLA's plugin for CPUs takes "
          "DIST_PJRT_VALUES=cpu_device_count=4");
    return {.devices = options.devices, .replicas = options.replicas, .communication = options.communication};
  }
};

}  // namespace dist
