#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/cluster/lone_process.hpp>
#include <dist/comm/communication_options.hpp>
#include <dist/comm/self.hpp>
#include <dist/comm/self_on_queue.hpp>
#include <dist/context/input_context.hpp>
#include <dist/context/lasting.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/context/replica_function.hpp>
#include <dist/context/select_replica.hpp>
#include <dist/core/config.hpp>
#include <dist/core/pointers.hpp>
#include <dist/data/distribute_options.hpp>
#include <dist/strategy/interface.hpp>
#include <dist/variable/store/mirrored.hpp>

namespace dist {

/// What the strategies with one replica share: replica functions are called directly, in the caller's thread.
template <class Derived, class DeviceType>
class SingleReplica : public StrategyInterface<Derived, DeviceType> {
 public:
  using Device = DeviceType;
  using Store = MirroredStore;
  using Collectives =
      std::conditional_t<Device::Place::host_accessible, SelfCollectives, SelfOnQueue<typename Device::Queue>>;
  using Context = ReplicaContext<Derived>;
  /// Whether `run` and others return a PerReplica, even of one value (spec C02).
  static constexpr bool wraps_values = false;

  [[nodiscard]] static constexpr std::size_t num_replicas_in_sync() noexcept { return 1; }
  [[nodiscard]] static constexpr std::size_t num_local_replicas() noexcept { return 1; }
  [[nodiscard]] static constexpr std::size_t first_local_replica() noexcept { return 0; }
  /// The collectives between its processes, of which there is one.
  [[nodiscard]] static constexpr SelfCollectives workers() noexcept { return {}; }
  [[nodiscard]] const std::shared_ptr<typename Device::Memory>& memory() const noexcept { return memory_; }
  [[nodiscard]] const std::shared_ptr<typename Device::Memory>& replica_memory() const noexcept { return memory_; }

  /// The stream of work of its replica.
  [[nodiscard]] const typename Device::Queues& queues() const noexcept { return queues_; }

  /// There is nothing to choose.
  [[nodiscard]] static CommunicationOptions communication() noexcept { return {}; }

  /// The one device (spec D11).
  [[nodiscard]] static std::vector<std::string> worker_devices() { return {Device::device_name(0)}; }

  /// The dataset that `make(InputContext)` returns (spec A21, I17).
  template <class Make, class Options = data::PipelinePerWorker>
  [[nodiscard]] static auto distribute_datasets_from_function(Make&& make, const Options& = {}) {
    constexpr bool one_pipeline = std::same_as<Options, data::PipelinePerWorker>;
    static_assert(one_pipeline,
                  "a strategy of one replica has one input pipeline: data::PipelinePerReplica is for Mirrored");
    return make(InputContext{});
  }

  /// Calls `fn(context, args...)` and returns what it returns, unwrapped (spec C02); a view is returned as `lasting`.
  /// Exceptions pass as they are.
  template <class Fn, class... Args>
  DIST_ALWAYS_INLINE decltype(auto) run(Fn&& fn, Args&&... args) {
    if constexpr (detail::require_replica_function<Fn, Context, Args...>()) {
      (require_value_per_replica(num_local_replicas(), args), ...);
      this->require_outside_others("run");
      const typename Device::Queue queue = queues_[0];
      queue.enter();
      Context context{static_cast<Derived&>(*this), collectives(queue), queue};
      const auto call = [&]() DIST_INLINE_LAMBDA -> decltype(auto) {
        return std::forward<Fn>(fn)(context, select_replica(0, args)...);
      };
      using Returned = std::decay_t<decltype(call())>;
      using Result = typename decltype(detail::require_lasting_result<Returned>())::type;
      if constexpr (std::same_as<Result, Returned>)
        return call();
      else
        return Result(call());
    }
  }

 protected:
  SingleReplica() { detail::warn_of_lone_process(); }
  ~SingleReplica() = default;

  friend class StrategyInterface<Derived, DeviceType>;
  /// Not known, because nothing stands between a replica function and its caller.
  [[nodiscard]] static constexpr bool is_in_run() noexcept { return false; }
  [[nodiscard]] static constexpr bool is_in_replica_function() noexcept { return false; }

 private:
  [[nodiscard]] static DIST_ALWAYS_INLINE Collectives
  collectives([[maybe_unused]] const typename Device::Queue& queue) {
    if constexpr (Device::Place::host_accessible)
      return {};
    else
      return Collectives{queue};
  }

  static constexpr std::size_t devices_[1] = {0};

  [[no_unique_address]] typename Device::Queues queues_{devices_};
  std::shared_ptr<typename Device::Memory> memory_ = std::make_shared<typename Device::Memory>(devices_);
};

}  // namespace dist
