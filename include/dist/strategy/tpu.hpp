#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
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
#include <dist/variable/store/mirrored.hpp>

namespace dist {

/// The policy of strategies on Xla devices: in a compiled step XLA's own collectives reduce, on the devices. What replica
/// functions that are run reduce lies in memory of the host, and is reduced there as by ThreadAllReduce.
struct XlaAllReduce {
  static constexpr std::string_view name = "XlaAllReduce";
  using DefaultDevice = Xla;

  /// Whether it works between members like these.
  template <class C>
  static constexpr bool fits = ThreadAllReduce::fits<C>;

  template <class C>
  using On = ThreadAllReduce::On<C>;
};

/// Which devices the replicas of a Tpu are on. Without devices and replicas: one replica on each that the plugin has.
struct TpuOptions {
  /// The shared library of the PJRT plugin; empty: what DIST_PJRT_PLUGIN or TPU_LIBRARY_PATH name, or else the active
  /// Python environment has (pjrt::plugin_path). A process has one plugin.
  std::string plugin = {};
  /// One replica on each of these, which are the first ones in their order: {"/xla:0", "/xla:1"}. None: `replicas` says how
  /// many.
  std::vector<std::string> devices = {};
  /// So many replicas, on the first devices.
  std::optional<std::size_t> replicas = std::nullopt;
  /// How replica functions that are run do collectives, on the host.
  CommunicationOptions communication = {};
};

namespace detail {

/// Refuses, in a sentence, devices for which steps are not compiled: `Checked` are then some.
template <class Device>
struct TpuDevices {
  static constexpr bool compile_steps = CompilesSteps<Device>;
  static_assert(compile_steps,
                "Tpu has its replicas on devices that steps are compiled for: use dist::Tpu<>, or "
                "Mirrored<ThreadAllReduce> with these devices");
  using Checked = std::conditional_t<compile_steps, Device, Xla>;
};

}  // namespace detail

/// Synchronous training on TPUs, and on whatever else has a PJRT plugin (spec A24): one replica per device, every variable
/// mirrored on each, and steps that XLA compiles as a whole: `strategy.compile(step)` gives a CompiledStep. What is given to
/// `run` instead is done by threads of the host, on the same variables, and not on the devices.
///
/// All of it was tried with XLA's plugin for CPUs; a TPU may show what that does not.
template <class DeviceType = Xla>
class Tpu : public BasicStrategy<Tpu<DeviceType>,
                                 ThreadReplicas<XlaAllReduce, typename detail::TpuDevices<DeviceType>::Checked>,
                                 OneProcess, MirroredStore> {
 public:
  /// One replica on each device of the plugin. For all of them: throws what pjrt::process_client throws, such as NoPlugin;
  /// InvalidArgument for more replicas than devices, and for other devices than the first ones; OutOfMemory when the system
  /// gives no threads or addresses for the replicas.
  Tpu() : Tpu(TpuOptions{}) {}
  explicit Tpu(std::size_t replicas) : Tpu(TpuOptions{.replicas = replicas}) {}
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
          "A Tpu has one replica on each device, and there are fewer",
          concat(*options.replicas, " replicas were asked for, and the platform ",
                 quoted(pjrt::process_client().platform()), " has ", devices, devices == 1 ? " device" : " devices"),
          "Ask for fewer replicas, or the plugin for more devices: its plugin for CPUs takes "
          "DIST_PJRT_VALUES=cpu_device_count=4");
    return {.devices = options.devices, .replicas = options.replicas, .communication = options.communication};
  }
};

}  // namespace dist
