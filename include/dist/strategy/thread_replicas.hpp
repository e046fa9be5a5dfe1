#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/cluster/lone_process.hpp>
#include <dist/comm/background.hpp>  // which strategies of threads offer
#include <dist/comm/communication_options.hpp>
#include <dist/comm/make_collectives.hpp>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/comm/thread/communicator.hpp>
#include <dist/context/input_context.hpp>
#include <dist/context/replica_function.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/log.hpp>
#include <dist/core/text.hpp>
#include <dist/core/trace.hpp>
#include <dist/data/agreement.hpp>
#include <dist/data/distribute_options.hpp>
#include <dist/device/cpu.hpp>
#include <dist/device/device.hpp>
#include <dist/device/device_name.hpp>
#include <dist/device/queue_scopes.hpp>
#include <dist/device/replica_threads.hpp>

namespace dist {

/// The devices of a strategy's replicas, and the timeout between them. By default, one replica on each available
/// device.
struct MirroredOptions {
  /// One replica on each of these, in this order (spec A02): {"/cpu:1", "/cpu:0"}. Empty: `replicas` sets the number.
  std::vector<std::string> devices = {};
  /// Number of replicas, placed by the device type (Cpu::placement); more replicas than devices share them.
  std::optional<std::size_t> replicas = std::nullopt;
  /// Binds each replica's thread to its device's processor, if there are enough. Two programs on one host that use some
  /// of its processors must name different `devices`, or their replicas share processors.
  bool pinned = true;
  /// The number of this process, and of all, on a host whose processes share its devices. A count of 0 uses the
  /// launcher's numbers.
  LocalProcesses on_host = {0, 0};
  /// Options of collectives. The timeout, 10 minutes by default, also limits waits for another thread's run.
  CommunicationOptions communication = {};
};

/// The name before version 0.3.
using ThreadedOptions = MirroredOptions;

namespace detail {

/// The devices of the replicas, by number; fewer if replicas share them.
struct ReplicaPlacement {
  std::size_t replicas;
  std::vector<std::size_t> devices;
};

/// Emitted once per process.
inline constinit Warning shared_devices{};
/// Throws InvalidArgument if the numbers of replicas and devices differ.
void require_replica_for_each(std::size_t devices, const MirroredOptions& options);
/// Warns once that replicas share devices of this type.
void warn_of_shared_devices(std::size_t replicas, std::size_t devices, std::string_view type);
/// Throws InvalidArgument if the options name an implementation, which the strategy's type defines.
[[nodiscard]] const CommunicationOptions& checked(const CommunicationOptions& options);

template <class Device>
[[nodiscard]] ReplicaPlacement replica_placement(const MirroredOptions& options) {
  const std::size_t count = Device::count();
  if (!options.devices.empty()) {
    std::vector<std::size_t> devices = devices_named(options.devices, Device::type, count, &Device::refuse);
    require_replica_for_each(devices.size(), options);
    return {devices.size(), std::move(devices)};
  }
  std::size_t usable = count;
  if constexpr (LimitsUse<Device>) usable = Device::most_at_once();
  // Request at least one, so that the device reports why none exists.
  const std::size_t wanted = options.replicas.value_or(std::max<std::size_t>(usable, 1));
  std::vector<std::size_t> devices;
  if constexpr (SharedOutOnHost<Device>)
    if (options.on_host.count != 0) devices = Device::placement(wanted, options.on_host);
  if (devices.empty()) devices = Device::placement(wanted);
  const std::size_t replicas = options.replicas.value_or(devices.size());
  if (replicas > devices.size()) warn_of_shared_devices(replicas, devices.size(), Device::type);
  return {replicas, std::move(devices)};
}

}  // namespace detail

/// The replicas of a process as threads, including the caller's, one per device. They communicate in a ThreadGroup, and
/// reduce with `Ops`.
template <class Ops, class DeviceType>
class ThreadReplicas {
 public:
  using Device = DeviceType;
  /// The queue of a replica's device.
  using Queue = typename Device::Queue;
  using Collectives = typename Ops::template On<ThreadCommunicator>;
  /// The options of devices and timeouts.
  using Options = MirroredOptions;
  /// True if every replica has its own thread, so that results are wrapped in a PerReplica.
  static constexpr bool are_threads = true;

  /// Throws InvalidArgument for invalid devices or replicas, and OutOfMemory if the system lacks threads.
  explicit ThreadReplicas(const MirroredOptions& options);

  /// Throws InvalidArgument if `devices` is empty.
  [[nodiscard]] static MirroredOptions on_devices(std::vector<std::string> devices);
  /// Options for `replicas` replicas on the available devices.
  [[nodiscard]] static MirroredOptions with_replicas(std::size_t replicas) {
    MirroredOptions options;
    options.replicas = replicas;
    return options;
  }

  /// The number of replicas of this process.
  [[nodiscard]] std::size_t size() const noexcept { return threads_.size(); }
  /// The device number of each replica; replicas share devices in rotation.
  [[nodiscard]] std::vector<std::size_t> devices() const;
  /// "2 replicas on /cpu:0 /cpu:1"
  [[nodiscard]] std::string describe() const;
  /// The replicas' queues, in replica order.
  [[nodiscard]] const typename Device::Queues& queues() const noexcept { return queues_; }
  /// The options of collectives that calls do not override.
  [[nodiscard]] const CommunicationOptions& communication() const noexcept { return communication_; }
  /// Memory with a region on each of `devices`, allocated by the policy.
  template <class Memory>
  [[nodiscard]] std::shared_ptr<Memory> memory(std::span<const std::size_t> devices) const {
    return detail::make_memory<Memory>(devices, state_);
  }

  /// Numbers the replicas for error messages, if other processes also have some.
  void set_ids(std::size_t first, std::size_t in_sync) noexcept {
    first_ = first;
    threads_.set_ids(first, in_sync);
  }

  /// While the result exists, other threads wait to use the replicas' shared state.
  [[nodiscard]] ReplicaThreads::Turn take_turn() const { return ReplicaThreads::Turn{threads_}; }

  /// Calls `call(replica, queue)` on each replica's thread, in a run of `strategy`, and waits for all. An exception in
  /// one stops the others at their next collective, and this throws one ReplicaError.
  void run(const void* strategy, detail::FunctionRef<void(std::size_t, const Queue&)> call);
  /// The collectives of a replica of this process, with its queue.
  [[nodiscard]] Collectives collectives(std::size_t replica, const Queue& queue) {
    return detail::make_collectives<Ops, Device>(ThreadCommunicator{group_, replica}, queue, state_);
  }

  /// Distributes one dataset over the replicas (spec I), with batches on their devices. `context` is the position of
  /// this process.
  template <class Dataset, class Options, data::Agreement Agreement>
  [[nodiscard]] auto distribute_dataset(Dataset dataset, const InputContext& context, const Options& options,
                                        Agreement agreement) const {
    if constexpr (Device::Space::host_accessible)
      return data::distribute_dataset(std::move(dataset), size(), context, options, std::move(agreement));
    else
      return data::uploaded<Device>(
          data::distribute_dataset(std::move(dataset), size(), context, options, std::move(agreement)), queues_, size(),
          options.fetch_ahead);
  }
  /// Distributes the datasets that `make(context)` returns, with batches on the replicas' devices.
  template <class Make, class Options, data::Agreement Agreement>
  [[nodiscard]] auto distribute_datasets_from_function(Make&& make, const InputContext& context, const Options& options,
                                                       Agreement agreement) const {
    if constexpr (Device::Space::host_accessible) {
      return data::distribute_datasets_from_function(make, size(), context, options, std::move(agreement));
    } else {
      std::size_t ahead = 1;
      if constexpr (std::same_as<Options, data::PipelinePerReplica>) ahead = options.fetch_ahead;
      return data::uploaded<Device>(
          data::distribute_datasets_from_function(make, size(), context, options, std::move(agreement)), queues_,
          size(), ahead);
    }
  }

 private:
  /// Returns a processor per replica; empty if the system places them.
  [[nodiscard]] std::vector<std::size_t> processors(bool pinned) const {
    if (!pinned || places_.replicas > ReplicaThreads::most_replicas) return {};  // too many are rejected below
    return Device::processors(devices());
  }

  [[nodiscard]] std::chrono::nanoseconds timeout() const {
    return communication_.timeout.value_or(std::chrono::minutes{10});
  }

  detail::ReplicaPlacement places_;
  CommunicationOptions communication_;
  ReplicaThreads threads_;
  ThreadGroup group_;
  [[no_unique_address]] typename Device::Queues queues_;
  [[no_unique_address]] detail::PolicyState<Ops, Device> state_;
  std::size_t first_ = 0;
};

template <class Ops, class DeviceType>
ThreadReplicas<Ops, DeviceType>::ThreadReplicas(const MirroredOptions& options)
    : places_(detail::replica_placement<Device>(options)),
      communication_(detail::checked(options.communication)),
      threads_(places_.replicas, processors(options.pinned), timeout()),
      group_(threads_.status(), threads_.spin_budget(), timeout()),
      queues_(devices(), timeout()),
      state_(queues_, places_.replicas) {
  detail::warn_of_lone_process();
  detail::trace_as_the_environment_asks();
}

template <class Ops, class DeviceType>
MirroredOptions ThreadReplicas<Ops, DeviceType>::on_devices(std::vector<std::string> devices) {
  static_cast<void>(devices_named(devices, Device::type, Device::count(), &Device::refuse));
  MirroredOptions options;
  options.devices = std::move(devices);
  return options;
}

template <class Ops, class DeviceType>
std::vector<std::size_t> ThreadReplicas<Ops, DeviceType>::devices() const {
  std::vector<std::size_t> devices;
  for (std::size_t replica = 0; replica < places_.replicas; ++replica)
    devices.push_back(places_.devices[replica % places_.devices.size()]);
  return devices;
}

template <class Ops, class DeviceType>
std::string ThreadReplicas<Ops, DeviceType>::describe() const {
  std::string line = concat(size(), size() == 1 ? " replica on" : " replicas on");
  for (const std::size_t device : places_.devices) line += concat(" ", Device::device_name(device));
  return line;
}

template <class Ops, class DeviceType>
inline void ThreadReplicas<Ops, DeviceType>::run(const void* strategy,
                                                 detail::FunctionRef<void(std::size_t, const Queue&)> call) {
  threads_.run(
      [this, strategy, call](std::size_t replica) {
        const ProfilerLabel label = detail::traced("run", first_ + replica);
        const TraceSpan span{label};
        const detail::RunGuard in_run{{.strategy = strategy}};
        const Queue queue = queues_[replica];
        queue.enter();
        [[maybe_unused]] const CopiesOfScope<Queue> copies{queue};
        [[maybe_unused]] const ProfilerRange<Queue> queued{label, queue};
        call(replica, queue);
      },
      [this] { group_.reset(); });
}

#ifdef DIST_COMPILED
extern template class ThreadReplicas<ThreadAllReduce, Cpu>;
#endif

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/strategy/thread_replicas.ipp>
#endif
