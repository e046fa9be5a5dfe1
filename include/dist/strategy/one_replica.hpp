#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/cluster/lone_process.hpp>
#include <dist/comm/communication_options.hpp>
#include <dist/comm/self.hpp>
#include <dist/comm/self_on_queue.hpp>
#include <dist/context/input_context.hpp>
#include <dist/core/config.hpp>
#include <dist/data/agreement.hpp>
#include <dist/data/distribute_options.hpp>

namespace dist {

/// The one replica of a strategy, which is the caller: replica functions are called directly, in the caller's thread.
template <class DeviceType>
class OneReplica {
 public:
  using Device = DeviceType;
  using Queue = typename Device::Queue;
  using Collectives = std::conditional_t<Device::Place::host_accessible, SelfCollectives, SelfOnQueue<Queue>>;
  struct Options {};
  static constexpr bool are_threads = false;

  explicit OneReplica(const Options&) { detail::warn_of_lone_process(); }

  [[nodiscard]] static constexpr std::size_t size() noexcept { return 1; }
  [[nodiscard]] static std::span<const std::size_t> devices() noexcept { return devices_; }
  [[nodiscard]] const typename Device::Queues& queues() const noexcept { return queues_; }
  /// There is nothing to choose.
  [[nodiscard]] static CommunicationOptions communication() noexcept { return {}; }

  /// What `call(0, collectives, queue)` returns. Exceptions pass as they are. The run leaves no trace in the thread.
  template <class Call>
  DIST_ALWAYS_INLINE decltype(auto) run(const void*, Call&& call) const {
    const Queue queue = queues_[0];
    queue.enter();
    if constexpr (Device::Place::host_accessible)
      return call(std::size_t{0}, Collectives{}, queue);
    else
      return call(std::size_t{0}, Collectives{queue}, queue);
  }

  /// The dataset that `make(InputContext)` returns (spec A21, I17), with its batches on the device.
  template <class Make>
  [[nodiscard]] auto distribute_datasets_from_function(Make&& make, const InputContext& context,
                                                       const data::PipelinePerWorker&, data::NoAgreement) const {
    if constexpr (Device::Place::host_accessible)
      return make(context);
    else
      return data::uploaded<Device>(make(context), queues_, 1, 1);
  }

 private:
  static constexpr std::size_t devices_[1] = {0};

  [[no_unique_address]] typename Device::Queues queues_{devices_};
};

}  // namespace dist
