#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <dist/comm/cross_device_ops.hpp>
#include <dist/comm/shared_memory_all_reduce.hpp>
#include <dist/comm/thread.hpp>
#include <dist/context/placement.hpp>
#include <dist/context/replica_context.hpp>
#include <dist/context/select_replica.hpp>
#include <dist/core/text.hpp>
#include <dist/data/distributed_dataset.hpp>
#include <dist/data/prefetch.hpp>
#include <dist/device/cpu.hpp>
#include <dist/strategy/interface.hpp>

namespace dist {

struct MirroredOptions {
  /// Replicas, one per device. More than there are devices share them.
  std::size_t replicas = Cpu::count();
  /// The longest that a replica waits for another to come to a collective.
  std::chrono::nanoseconds timeout = std::chrono::minutes{10};
};

/// Synchronous training on several devices of one process (spec A01): one replica per device, every variable mirrored on
/// each, gradients reduced by `Ops`.
template <class Ops, class DeviceType = Cpu>
class Mirrored : public StrategyInterface<Mirrored<Ops, DeviceType>, DeviceType> {
  static_assert(CrossDeviceOps<Ops, ThreadCommunicator>,
                "Mirrored<Ops> needs cross-device ops that work between threads, such as SharedMemoryAllReduce or "
                "ReductionToOneDevice: an empty struct with a name and a nested template On<Communicator>");

 public:
  using Device = DeviceType;
  using Placement = OnEveryReplica;
  using Collectives = typename Ops::template On<ThreadCommunicator>;
  using Context = ReplicaContext<Mirrored>;

  /// One replica per device that this process may use.
  Mirrored() : Mirrored(MirroredOptions{}) {}
  /// Throws InvalidArgument for zero replicas, OutOfMemory when the system gives no threads or addresses for them.
  explicit Mirrored(std::size_t replicas) : Mirrored(MirroredOptions{.replicas = replicas}) {}
  explicit Mirrored(MirroredOptions options)
      : devices_(std::min(options.replicas, Device::count())),
        threads_(options.replicas),
        group_(threads_.status(), threads_.spin_budget(), options.timeout),
        memory_(std::make_shared<typename Device::Memory>(options.replicas)) {}

  [[nodiscard]] std::size_t num_replicas_in_sync() const noexcept { return threads_.size(); }
  [[nodiscard]] std::size_t num_local_replicas() const noexcept { return threads_.size(); }
  [[nodiscard]] const std::shared_ptr<typename Device::Memory>& memory() const noexcept { return memory_; }
  [[nodiscard]] const std::shared_ptr<typename Device::Memory>& replica_memory() const noexcept { return memory_; }

  /// "Mirrored<SharedMemoryAllReduce, Cpu>: 2 replicas on /cpu:0 /cpu:1"
  [[nodiscard]] std::string describe() const {
    std::string line = text("Mirrored<", Ops::name, ", ", Device::name, ">: ", num_replicas_in_sync(),
                            num_replicas_in_sync() == 1 ? " replica on" : " replicas on");
    for (std::size_t device = 0; device < devices_; ++device) line += text(" ", Device::device_name(device));
    return line;
  }

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
      Context context{*this, Collectives{ThreadCommunicator{group_, replica}}};
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

 private:
  template <class Task>
  void run_all(Task&& task) {
    threads_.run(task, [this] { group_.reset(); });
  }

  std::size_t devices_;  // as the thread that makes the strategy sees them: a replica's own thread is bound to one
  ReplicaThreads threads_;
  ThreadGroup group_;
  std::shared_ptr<typename Device::Memory> memory_;
};

}  // namespace dist
