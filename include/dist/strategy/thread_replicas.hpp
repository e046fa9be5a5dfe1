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
#include <dist/comm/thread/communicator.hpp>
#include <dist/context/input_context.hpp>
#include <dist/context/run_here.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/log.hpp>
#include <dist/core/text.hpp>
#include <dist/core/trace.hpp>
#include <dist/data/agreement.hpp>
#include <dist/data/distribute_options.hpp>
#include <dist/device/copies_of_scope.hpp>
#include <dist/device/device.hpp>
#include <dist/device/device_name.hpp>
#include <dist/device/profiler_range.hpp>
#include <dist/device/replica_threads.hpp>

namespace dist {

/// Where the replicas of a strategy run, and how long they wait for each other. Without devices and replicas: one
/// replica on each device that this process may use.
struct MirroredOptions {
  /// One replica on each of these, in this order (spec A02): {"/cpu:1", "/cpu:0"}. None: `replicas` says how many.
  std::vector<std::string> devices = {};
  /// So many replicas, on the devices that their type places them on (Cpu::placement); more than there are share them.
  std::optional<std::size_t> replicas = std::nullopt;
  /// Whether each replica's thread stays on its device's processor, where there are enough of them. Two programs on one host
  /// that use some of its processors each name other `devices`, or their replicas stay on the same processors.
  bool pinned = true;
  /// This process among those of its host, which share devices out where nobody names them: for strategies of several
  /// processes. Without a count: what a launcher says.
  LocalProcesses on_host = {0, 0};
  /// How collectives are done. The timeout is also the longest that a thread waits for another's run to end; 10 minutes
  /// where none is chosen.
  CommunicationOptions communication = {};
};

/// The name until 0.3.
using ThreadedOptions = MirroredOptions;

namespace detail {

inline constinit Warning shared_devices{};

/// The devices of the replicas, by number; fewer than replicas when these share them all.
struct ReplicaPlacement {
  std::size_t replicas;
  std::vector<std::size_t> devices;
};

template <class Device>
[[nodiscard]] ReplicaPlacement replica_placement(const MirroredOptions& options) {
  const std::size_t count = Device::count();
  if (!options.devices.empty()) {
    std::vector<std::size_t> devices = devices_named(options.devices, Device::type, count, &Device::refuse);
    if (options.replicas && *options.replicas != devices.size())
      throw InvalidArgument("A strategy was given devices and another number of replicas",
                            concat(devices.size(), " devices, ", *options.replicas, " replicas"),
                            "Give one of the two: each device takes one replica");
    return {devices.size(), std::move(devices)};
  }
  std::size_t usable = count;
  if constexpr (LimitsUse<Device>) usable = Device::most_at_once();
  // At least one is asked for, so that the device says why there is none.
  const std::size_t wanted = options.replicas.value_or(std::max<std::size_t>(usable, 1));
  std::vector<std::size_t> devices;
  if constexpr (SharedOutOnHost<Device>)
    if (options.on_host.count != 0) devices = Device::placement(wanted, options.on_host);
  if (devices.empty()) devices = Device::placement(wanted);
  const std::size_t replicas = options.replicas.value_or(devices.size());
  if (replicas > devices.size() && !shared_devices.was_given())
    shared_devices.emit(concat(replicas, " replicas share ", devices.size(),
                               devices.size() == 1 ? " device" : " devices", " (", Device::type,
                               "), which makes each of them slower. Leave the number out for one replica on ",
                               "each device. DIST_WARNINGS=0 silences this."));
  return {replicas, std::move(devices)};
}

}  // namespace detail

/// The replicas of a process as threads, one on each device, the caller's among them: they meet in a ThreadGroup, and reduce
/// as `Ops` says.
template <class Ops, class DeviceType>
class ThreadReplicas {
 public:
  using Device = DeviceType;
  using Queue = typename Device::Queue;
  using Collectives = typename Ops::template On<ThreadCommunicator>;
  using Options = MirroredOptions;
  static constexpr bool are_threads = true;

  /// Throws InvalidArgument for devices or replicas that cannot be, OutOfMemory when the system gives no threads for
  /// them.
  explicit ThreadReplicas(const MirroredOptions& options)
      : places_(detail::replica_placement<Device>(options)),
        communication_(checked(options.communication)),
        threads_(places_.replicas, processors(options.pinned), timeout()),
        group_(threads_.status(), threads_.spin_budget(), timeout()),
        queues_(devices(), timeout()),
        state_(queues_, places_.replicas) {
    detail::warn_of_lone_process();
    detail::trace_as_the_environment_asks();
  }

  /// The options for one replica on each of `devices`. Throws InvalidArgument when there is none.
  [[nodiscard]] static MirroredOptions on_devices(std::vector<std::string> devices) {
    static_cast<void>(devices_named(devices, Device::type, Device::count(), &Device::refuse));
    MirroredOptions options;
    options.devices = std::move(devices);
    return options;
  }
  [[nodiscard]] static MirroredOptions with_replicas(std::size_t replicas) {
    MirroredOptions options;
    options.replicas = replicas;
    return options;
  }

  [[nodiscard]] std::size_t size() const noexcept { return threads_.size(); }
  /// The device of each replica, by number; replicas that share devices take them in turn.
  [[nodiscard]] std::vector<std::size_t> devices() const {
    std::vector<std::size_t> devices;
    for (std::size_t replica = 0; replica < places_.replicas; ++replica)
      devices.push_back(places_.devices[replica % places_.devices.size()]);
    return devices;
  }
  /// "2 replicas on /cpu:0 /cpu:1"
  [[nodiscard]] std::string describe() const {
    std::string line = concat(size(), size() == 1 ? " replica on" : " replicas on");
    for (const std::size_t device : places_.devices) line += concat(" ", Device::device_name(device));
    return line;
  }
  [[nodiscard]] const typename Device::Queues& queues() const noexcept { return queues_; }
  [[nodiscard]] const CommunicationOptions& communication() const noexcept { return communication_; }
  /// Memory with a region on each of `devices`, from where the policy takes it.
  template <class Memory>
  [[nodiscard]] std::shared_ptr<Memory> memory(std::span<const std::size_t> devices) const {
    return detail::make_memory<Memory>(devices, state_);
  }

  /// Called where other processes have replicas, too, so that errors number the replica among all.
  void set_ids(std::size_t first, std::size_t in_sync) noexcept {
    first_ = first;
    threads_.set_ids(first, in_sync);
  }

  /// While the result lives, other threads of the program wait before they use what the replicas share.
  [[nodiscard]] ReplicaThreads::Turn take_turn() const { return ReplicaThreads::Turn{threads_}; }

  /// Calls `call(replica, collectives, queue)` on the thread of each replica, in a run of `strategy`, and returns when all
  /// have returned. An exception of one stops the others at their next collective, and surfaces as one ReplicaError.
  template <class Call>
  void run(const void* strategy, Call&& call) {
    threads_.run(
        [&](std::size_t replica) {
          const ProfilerLabel label = detail::traced("run", first_ + replica);
          const TraceSpan span{label};
          const detail::RunGuard in_run{{.strategy = strategy}};
          const Queue queue = queues_[replica];
          queue.enter();
          [[maybe_unused]] const CopiesOfScope<Queue> copies{queue};
          [[maybe_unused]] const ProfilerRange<Queue> queued{label, queue};
          call(replica, detail::make_collectives<Ops, Device>(ThreadCommunicator{group_, replica}, queue, state_),
               queue);
        },
        [this] { group_.reset(); });
  }

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
  /// One for each replica, or none when the system is to place them.
  [[nodiscard]] std::vector<std::size_t> processors(bool pinned) const {
    if (!pinned || places_.replicas > ReplicaThreads::most_replicas) return {};  // too many are refused next
    return Device::processors(devices());
  }

  static const CommunicationOptions& checked(const CommunicationOptions& options) {
    if (options.implementation != Implementation::automatic)
      throw InvalidArgument("The options of a strategy ask for an implementation of collectives",
                            "its type says how they are done",
                            "Name the one you want in the type, as in Mirrored<RingAllReduce>");
    return options;
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

}  // namespace dist
