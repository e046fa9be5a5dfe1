#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <dist/cluster/lone_process.hpp>
#include <dist/comm/communication_options.hpp>
#include <dist/comm/self.hpp>
#include <dist/comm/self_on_queue.hpp>
#include <dist/context/input_context.hpp>
#include <dist/core/config.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/data/agreement.hpp>
#include <dist/data/distribute_options.hpp>
#include <dist/device/device_name.hpp>
#include <dist/device/queue_scopes.hpp>

namespace dist {

namespace detail {

/// The device of a replica that is the caller.
template <class Device, bool is_host = Device::Space::host_accessible>
struct SingleDevice {
  struct Options {};
  static constexpr std::size_t devices[1] = {0};
  explicit constexpr SingleDevice(const Options&) noexcept {}
};
template <class Device>
struct SingleDevice<Device, false> {
  struct Options {
    std::optional<std::string> device = {};  ///< "/gpu:1"; empty: the first that its type's placement returns
  };
  std::vector<std::size_t> devices;
  explicit SingleDevice(const Options& options)
      : devices(options.device ? devices_named({&*options.device, 1}, Device::type, Device::count(), &Device::refuse)
                               : Device::placement(1)) {}
};

}  // namespace detail

/// The only replica of a strategy, in the caller's thread, which calls replica functions directly.
template <class DeviceType>
class OneReplica {
 public:
  using Device = DeviceType;
  using Queue = typename Device::Queue;
  using Collectives = std::conditional_t<Device::Space::host_accessible, SelfCollectives, SelfOnQueue<Queue>>;
  /// The device of the replica; no options on the host.
  using Options = typename detail::SingleDevice<Device>::Options;
  static constexpr bool are_threads = false;

  /// Throws InvalidArgument if `options` name an invalid device.
  explicit OneReplica(const Options& options) : place_(options) { detail::warn_of_lone_process(); }

  [[nodiscard]] static constexpr std::size_t size() noexcept { return 1; }
  [[nodiscard]] std::span<const std::size_t> devices() const noexcept { return place_.devices; }
  [[nodiscard]] const typename Device::Queues& queues() const noexcept { return queues_; }
  /// Memory with a region on each of `devices`.
  template <class Memory>
  [[nodiscard]] static std::shared_ptr<Memory> memory(std::span<const std::size_t> devices) {
    return std::make_shared<Memory>(devices);
  }
  [[nodiscard]] static CommunicationOptions communication() noexcept { return {}; }

  /// Returns `call(0, collectives, queue)`. Passes exceptions on unchanged, and does not register the run in the
  /// thread.
  template <class Call>
  DIST_ALWAYS_INLINE decltype(auto) run(const void*, Call&& call) const {
    const Queue queue = queues_[0];
    queue.enter();
    if constexpr (Device::Space::host_accessible) {
      return call(std::size_t{0}, Collectives{}, queue);
    } else {
      const CopiesOfScope<Queue> copies{queue};
      return call(std::size_t{0}, Collectives{queue}, queue);
    }
  }

  /// Returns the dataset of `make(InputContext)` (spec A21, I17), with its batches on the device.
  template <class Make>
  [[nodiscard]] auto distribute_datasets_from_function(Make&& make, const InputContext& context,
                                                       const data::PipelinePerWorker&, data::NoAgreement) const {
    if constexpr (Device::Space::host_accessible)
      return make(context);
    else
      return data::uploaded<Device>(make(context), queues_, 1, 1);
  }

 private:
  [[no_unique_address]] detail::SingleDevice<Device> place_;
  [[no_unique_address]] typename Device::Queues queues_{place_.devices};
};

}  // namespace dist
