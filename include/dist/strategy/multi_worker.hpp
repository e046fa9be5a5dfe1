#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <dist/cluster/cluster_resolver.hpp>
#include <dist/cluster/mpi/mpi_network.hpp>
#include <dist/cluster/task.hpp>
#include <dist/comm/communication_options.hpp>
#include <dist/comm/cross_device_ops.hpp>
#include <dist/comm/make_collectives.hpp>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/trace.hpp>
#include <dist/device/cpu.hpp>
#include <dist/strategy/basic_strategy.hpp>
#include <dist/strategy/thread_replicas.hpp>
#include <dist/strategy/workers.hpp>
#include <dist/variable/store/mirrored.hpp>

namespace dist {

class TfConfigResolver;  // it needs jansson, and a program that owns MPI does not need it

namespace detail {
/// Stands for a resolver that is not known, so that the sentence about it is all that the compiler says.
struct NoResolver {
  [[nodiscard]] static ClusterSpec cluster_spec() { return {}; }
  [[nodiscard]] static std::optional<Task> task() { return std::nullopt; }
  [[nodiscard]] static std::optional<std::size_t> num_accelerators() { return std::nullopt; }
  [[nodiscard]] static std::string describe() { return ""; }
};
template <>
struct WorldHost<NoResolver> {
  static std::unique_ptr<WorldHandle> join(const ClusterSpec&, std::size_t, std::string_view,
                                           std::chrono::milliseconds) {
    return nullptr;
  }
};
template <class T>
concept IsDefined = requires {
  sizeof(T);
};
template <class Resolver>
struct DefaultResolver {
  static constexpr bool is_known = IsDefined<Resolver>;
  static_assert(
      is_known,
      "MultiWorker without a communicator takes its processes from TF_CONFIG or a launcher: include "
      "<dist/multi_worker.hpp>, or give it the communicator of a program that owns MPI, dist::mpi::ref(comm)");
  using Type = std::conditional_t<is_known, Resolver, NoResolver>;
};

[[nodiscard]] inline MirroredOptions threaded_options(const MultiWorkerOptions& options) {
  MirroredOptions threaded;
  threaded.devices = options.devices;
  threaded.replicas = replicas_of(options);
  threaded.pinned = options.pinned.value_or(true);
  threaded.communication = options.communication;
  return threaded;
}

/// The devices of the replicas of `Ops`. Refuses, in a sentence, those that the policy does not join: `Checked` are then
/// others.
template <class Ops, class DeviceType>
struct DevicesOfWorkers {
  using OfPolicy = DefaultDevice<Ops, Cpu>;
  static constexpr bool are_reached = DeviceType::Space::host_accessible || OpsOfWorkers<Ops>;
  static_assert(
      are_reached,
      "this policy does not join these devices of several processes: use MultiWorker<NcclAllReduce> for GPUs, "
      "or MultiWorker<RingAllReduce> for Cpu");
  static constexpr bool are_of_policy = !OpsOfWorkers<Ops> || std::same_as<DeviceType, OfPolicy>;
  static_assert(
      are_of_policy,
      "this policy joins devices of another type than MultiWorker<Ops, Device> names: leave the device out, or "
      "use MultiWorker<RingAllReduce> for Cpu");
  using Checked = std::conditional_t<are_reached && are_of_policy, DeviceType, OfPolicy>;
};
}  // namespace detail

/// Synchronous training on several processes, each with one or more replicas, on one machine or many (spec A07): every
/// variable has a copy on every replica of every process. All processes run the same program and make the same calls;
/// what sees all replicas at once, such as `reduce`, is a collective call of the processes.
///
/// `Ops` says how processes reduce: RingAllReduce (between nodes; the processes of a node meet in its memory),
/// MpiAllReduce (all processes, as MPI does it), NodeAllReduce (one node only), AutoAllReduce. The replicas of
/// a process are threads that meet in its memory. Sums are made in a fixed order, which is not that of the ranks.
///
/// With NcclAllReduce each replica has a GPU, and NCCL reduces between the GPUs of all processes; what lies in the host's
/// memory goes the way of RingAllReduce. `Net` joins the processes (detail::WorkersNetwork).
///
/// Threads of the program may share the strategy: their calls of `run`, `reduce` and others take turns. All processes make
/// these calls in the same order, so threads that use it at the same time agree on an order, or each has its own strategy
/// (`split`). Calls between nodes use MPI: they throw InvalidArgument in a thread that did not initialise MPI, unless MPI
/// has ThreadLevel::serialized or more (MultiWorkerOptions::thread_level). Make the strategy before the program
/// starts threads, because the start of MPI may fork.
template <class Ops, class DeviceType = detail::DefaultDevice<Ops, Cpu>, class Net = MpiNetwork>
class MultiWorker
    : public BasicStrategy<MultiWorker<Ops, DeviceType, Net>,
                           ThreadReplicas<ThreadAllReduce, typename detail::DevicesOfWorkers<Ops, DeviceType>::Checked>,
                           Workers<Ops, Net>, MirroredStore> {
  using World = typename Net::World;

 public:
  /// The processes that TF_CONFIG lists or a launcher started; without either, this one alone (spec A07, A08). For all
  /// of them: throws InvalidArgument for a cluster or options that cannot be, or that differ between the processes,
  /// DeadlineExceeded when not all come.
  template <class Resolver = TfConfigResolver>
  MultiWorker() : MultiWorker(typename detail::DefaultResolver<Resolver>::Type{}, MultiWorkerOptions{}) {}
  template <class Resolver = TfConfigResolver>
  explicit MultiWorker(const MultiWorkerOptions& options)
      : MultiWorker(typename detail::DefaultResolver<Resolver>::Type{}, options) {}
  /// With `replicas` replicas in each process.
  template <class Resolver = TfConfigResolver>
  explicit MultiWorker(std::size_t replicas)
      : MultiWorker(typename detail::DefaultResolver<Resolver>::Type{}, MultiWorker::with_replicas_here(replicas)) {}
  /// The processes that `resolver` knows of.
  template <ClusterResolver R>
  explicit MultiWorker(const R& resolver, const MultiWorkerOptions& options = {})
      : MultiWorker(World{resolver, options.start_timeout, options.thread_level},
                    with_accelerators(resolver, options)) {}
  /// The processes of a communicator of the program, which owns MPI: `mpi::ref(comm)`. MPI is never initialised or
  /// finalised then, and the calling thread is not bound unless the options say so.
  explicit MultiWorker(typename Net::Reference comm, const MultiWorkerOptions& options = {})
      : MultiWorker(World{comm}, options) {}

  /// What this process is in its cluster; none where there is no cluster.
  [[nodiscard]] const std::optional<Task>& task() const noexcept { return this->workers_part().world().task(); }

  /// The options as they were given.
  [[nodiscard]] const CommunicationOptions& communication() const noexcept { return options_.communication; }

  /// A strategy of the processes that give the same `color`, which are its workers in the order of `key`, and then of their
  /// numbers here, with the same options. Parts work each at its own pace, and a failure in one is not known in others
  /// before the next call of all; this strategy goes on as before, and outlives them. A collective call of the processes,
  /// outside replica functions.
  [[nodiscard]] MultiWorker split(std::size_t color, std::size_t key = 0) {
    this->require_outside("split", "use replica.split");
    const auto turn = this->replicas_part().take_turn();
    this->workers().agree({.operation = "split"});
    const auto& processes = this->workers_part();
    const typename World::Part part{processes.world(), processes.membership(), color, key};
    MultiWorkerOptions options = options_;
    if constexpr (!DeviceType::Space::host_accessible) options.devices = this->worker_devices();
    return MultiWorker{part.world(), options};
  }

  /// "MultiWorker<RingAllReduce, Cpu>: 4 replicas, 2 of them here, worker 0 of 2 on 1 node (TF_CONFIG)"
  [[nodiscard]] std::string describe() const {
    const std::size_t replicas = this->num_replicas_in_sync();
    const std::size_t nodes = this->workers_part().layout().groups();
    return concat("MultiWorker<", Ops::name, ", ", DeviceType::name, ">: ", replicas,
                  replicas == 1 ? " replica, " : " replicas, ", this->num_local_replicas(), " of them here, worker ",
                  this->worker_rank(), " of ", this->num_workers(), " on ", nodes, nodes == 1 ? " node (" : " nodes (",
                  this->workers_part().world().source(), ")");
  }

 private:
  MultiWorker(World world, const MultiWorkerOptions& options)
      : MultiWorker::BasicStrategy(detail::threaded_options(options), std::move(world), options), options_(options) {
    detail::name_traced_process(this->worker_rank(), concat("worker ", this->worker_rank()));
  }

  static MultiWorkerOptions with_replicas_here(std::size_t replicas) {
    MultiWorkerOptions options;
    options.replicas = replicas;
    return options;
  }
  /// The resolver's number of devices counts where the options leave it open; without devices there is the CPU (spec
  /// A10). The program does not own MPI, so its threads are bound.
  template <class R>
  static MultiWorkerOptions with_accelerators(const R& resolver, MultiWorkerOptions options) {
    if (!options.replicas && options.devices.empty())
      options.replicas = std::max<std::size_t>(resolver.num_accelerators().value_or(1), 1);
    options.pinned = options.pinned.value_or(true);
    return options;
  }

  MultiWorkerOptions options_;
};

/// A MultiWorker without a policy, for a sentence.
template <class... Arguments>
MultiWorker(const Arguments&...) -> MultiWorker<detail::NoOps>;

}  // namespace dist
