#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/comm/thread.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/context/select_replica.hpp>
#include <dist/core/text.hpp>
#include <dist/data/distributed_dataset.hpp>
#include <dist/data/prefetch.hpp>
#include <dist/device/affinity.hpp>
#include <dist/device/device_name.hpp>
#include <dist/device/replica_threads.hpp>
#include <dist/strategy/interface.hpp>

namespace dist {

/// Where the replicas of a strategy run, and how long they wait for each other. Without devices and replicas: one replica on
/// each device that this process may use.
struct ThreadedOptions {
  /// One replica on each of these, in this order (spec A02): {"/cpu:1", "/cpu:0"}.
  std::optional<std::vector<std::string>> devices = std::nullopt;
  /// So many replicas, on the first devices; more than there are devices share them.
  std::optional<std::size_t> replicas = std::nullopt;
  /// Whether each replica's thread stays on its device's processor, where there are enough of them.
  bool pinned = true;
  /// The longest that a replica waits for another to come to a collective, and a thread for another's run to end.
  std::chrono::nanoseconds timeout = std::chrono::minutes{10};
};

namespace detail {

/// The devices of the replicas, by number; fewer than replicas when these share them all.
struct ReplicaPlaces {
  std::size_t replicas;
  std::vector<std::size_t> devices;
};

template <class Device>
[[nodiscard]] ReplicaPlaces replica_places(const ThreadedOptions& options) {
  const std::size_t count = Device::count();
  if (options.devices) {
    std::vector<std::size_t> devices = devices_named(*options.devices, Device::type, count);
    if (options.replicas && *options.replicas != devices.size())
      throw InvalidArgument("A strategy was given devices and another number of replicas",
                            text(devices.size(), " devices, ", *options.replicas, " replicas"),
                            "Give one of the two: each device takes one replica");
    return {devices.size(), std::move(devices)};
  }
  const std::size_t replicas = options.replicas.value_or(count);
  std::vector<std::size_t> devices(std::min(replicas, count));
  for (std::size_t device = 0; device < devices.size(); ++device) devices[device] = device;
  return {replicas, std::move(devices)};
}

}  // namespace detail

/// What the strategies with several replicas in one process have in common: a thread per replica, which meet in a
/// ThreadGroup. `Ops` says how they reduce.
template <class Derived, class Ops, class DeviceType>
class Threaded : public StrategyInterface<Derived, DeviceType> {
 public:
  using Device = DeviceType;
  using Collectives = typename Ops::template On<ThreadCommunicator>;
  using Context = ReplicaContext<Derived>;

  [[nodiscard]] std::size_t num_replicas_in_sync() const noexcept { return threads_.size(); }
  [[nodiscard]] std::size_t num_local_replicas() const noexcept { return threads_.size(); }

  /// Calls `fn(context, args...)` once on every replica's thread (spec C01): a PerReplica argument is sliced, anything else
  /// is handed to all replicas, which must not change it without care. Returns the replicas' results as a PerReplica, or
  /// nothing when `fn` returns nothing.
  ///
  /// An exception in a replica stops the others at their next collective and surfaces here as one ReplicaError.
  template <class Fn, class... Args>
  auto run(Fn&& fn, Args&&... args) {
    using Result = std::decay_t<std::invoke_result_t<Fn&, Context&, decltype(select_replica(0, args))...>>;
    (require_value_per_replica(num_local_replicas(), args), ...);
    const auto call = [&](std::size_t replica) -> decltype(auto) {
      Context context{static_cast<Derived&>(*this), Collectives{ThreadCommunicator{group_, replica}}};
      return fn(context, select_replica(replica, args)...);
    };
    if constexpr (std::is_void_v<Result>) {
      run_all(call);
    } else {
      static_assert(
          std::default_initializable<Result>,
          "what a replica function returns must be default-constructible: its place is made before the replicas run");
      PerReplica<Result> results(num_local_replicas());
      run_all([&](std::size_t replica) { results[replica] = call(replica); });
      return results;
    }
  }

  /// Divides every global batch of `dataset` among the replicas and makes the next one ready in the background (spec I01,
  /// I15): a range whose elements `run` slices. Each loop over the result is a new epoch.
  template <class Dataset>
  [[nodiscard]] auto distribute_dataset(Dataset dataset) const {
    return data::DistributedDataset{std::move(dataset) | data::prefetch(1), num_local_replicas()};
  }

 protected:
  /// Throws InvalidArgument for devices or replicas that cannot be, OutOfMemory when the system gives no threads for them.
  explicit Threaded(const ThreadedOptions& options)
      : places_(detail::replica_places<Device>(options)),
        threads_(places_.replicas, processors(options.pinned), options.timeout),
        group_(threads_.status(), threads_.spin_budget(), options.timeout) {}
  ~Threaded() = default;

  /// "Mirrored<SharedMemoryAllReduce, Cpu>: 2 replicas on /cpu:0 /cpu:1"
  [[nodiscard]] std::string describe_as(std::string_view type) const {
    std::string line =
        text(type, ": ", num_replicas_in_sync(), num_replicas_in_sync() == 1 ? " replica on" : " replicas on");
    for (const std::size_t device : places_.devices) line += text(" ", Device::device_name(device));
    return line;
  }

 private:
  template <class Task>
  void run_all(Task&& task) {
    threads_.run(task, [this] { group_.reset(); });
  }

  /// One for each replica, or none when the system is to place them.
  [[nodiscard]] std::vector<std::size_t> processors(bool pinned) const {
    if (!pinned || places_.devices.size() != places_.replicas) return {};
    const std::vector<std::size_t> allowed = allowed_processors();
    std::vector<std::size_t> chosen;
    for (const std::size_t device : places_.devices) chosen.push_back(allowed[device % allowed.size()]);
    return chosen;
  }

  detail::ReplicaPlaces places_;
  ReplicaThreads threads_;
  ThreadGroup group_;
};

}  // namespace dist
