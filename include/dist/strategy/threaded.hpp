#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <dist/comm/thread.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/context/select_replica.hpp>
#include <dist/core/text.hpp>
#include <dist/data/distributed_dataset.hpp>
#include <dist/data/prefetch.hpp>
#include <dist/device/cpu.hpp>
#include <dist/strategy/interface.hpp>

namespace dist {

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
  Threaded(std::size_t replicas, std::chrono::nanoseconds timeout)
      : devices_(std::min(replicas, Device::count())),
        threads_(replicas),
        group_(threads_.status(), threads_.spin_budget(), timeout) {}
  ~Threaded() = default;

  /// "Mirrored<SharedMemoryAllReduce, Cpu>: 2 replicas on /cpu:0 /cpu:1"
  [[nodiscard]] std::string describe_as(std::string_view type) const {
    std::string line =
        text(type, ": ", num_replicas_in_sync(), num_replicas_in_sync() == 1 ? " replica on" : " replicas on");
    for (std::size_t device = 0; device < devices_; ++device) line += text(" ", Device::device_name(device));
    return line;
  }

 private:
  template <class Task>
  void run_all(Task&& task) {
    threads_.run(task, [this] { group_.reset(); });
  }

  std::size_t devices_;  // as the thread that makes the strategy sees them: a replica's own thread is bound to one
  ReplicaThreads threads_;
  ThreadGroup group_;
};

}  // namespace dist
