#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <dist/cluster/cluster_resolver.hpp>
#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/mpi/mpi_network.hpp>
#include <dist/comm/background.hpp>
#include <dist/comm/communication_options.hpp>
#include <dist/comm/cross_device_ops.hpp>
#include <dist/comm/make_collectives.hpp>
#include <dist/comm/memory/thread_all_reduce.hpp>
#include <dist/comm/mpi/communicator.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/trace.hpp>
#include <dist/device/cpu.hpp>
#include <dist/strategy/basic_strategy.hpp>
#include <dist/strategy/thread_replicas.hpp>
#include <dist/strategy/workers.hpp>
#include <dist/variable/store.hpp>

namespace dist {

class TfConfigResolver;  // it needs jansson, which a program that owns MPI does not need

namespace detail {
/// A placeholder for an unknown resolver, to avoid further compiler errors.
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

/// The devices of the replicas of `Ops`. Checks that the policy connects them, with one error message; `Checked` are
/// then valid.
template <class Ops, class DeviceType>
struct DevicesOfWorkers {
  using OfPolicy = DefaultDevice<Ops, Cpu>;
  static constexpr bool are_reached = DeviceType::Space::host_accessible || OpsOfWorkers<Ops>;
  static_assert(are_reached,
                "this policy does not connect these devices across processes: use MultiWorker<NcclAllReduce> for GPUs, "
                "or MultiWorker<RingAllReduce> for Cpu");
  static constexpr bool are_of_policy = !OpsOfWorkers<Ops> || std::same_as<DeviceType, OfPolicy>;
  static_assert(are_of_policy,
                "this policy connects devices of another type than MultiWorker<Ops, Device> names: leave out the "
                "device, or use MultiWorker<RingAllReduce> for Cpu");
  using Checked = std::conditional_t<are_reached && are_of_policy, DeviceType, OfPolicy>;
};
}  // namespace detail

/// Synchronous training on several processes with one or more replicas each, on one or more machines (spec A07). Every
/// replica has a copy of every variable. All processes must run the same program and make the same calls; functions on
/// all replicas, such as `reduce`, are collective calls of the processes.
///
/// `Ops` defines how processes reduce: RingAllReduce (between nodes; within a node in shared memory), MpiAllReduce
/// (MPI, all processes), NodeAllReduce (one node only), or AutoAllReduce. The replicas of a process are threads. The
/// order of summation is fixed, but not the order of ranks.
///
/// With NcclAllReduce, each replica has a GPU, and NCCL reduces between the GPUs of all processes; host memory is
/// reduced as by RingAllReduce. `Net` connects the processes (detail::WorkersNetwork).
///
/// Threads may share the strategy: their calls of `run`, `reduce` and others are serialised. All processes must make
/// these calls in the same order, so concurrent threads must agree on one, or use separate strategies (`split`). Calls
/// between nodes throw InvalidArgument in a thread that did not initialise MPI, unless MPI has ThreadLevel::serialized
/// or higher (MultiWorkerOptions::thread_level). Create the strategy before threads, because starting MPI may fork.
template <class Ops, class DeviceType = detail::DefaultDevice<Ops, Cpu>, class Net = MpiNetwork>
class MultiWorker
    : public BasicStrategy<MultiWorker<Ops, DeviceType, Net>,
                           ThreadReplicas<ThreadAllReduce, typename detail::DevicesOfWorkers<Ops, DeviceType>::Checked>,
                           Workers<Ops, Net>, MirroredStore> {
  using World = typename Net::World;

 public:
  /// Uses the processes that TF_CONFIG lists or a launcher started; without either, this process alone (spec A07, A08).
  /// All constructors throw InvalidArgument for an invalid cluster or options, or if they differ between processes, and
  /// DeadlineExceeded if not all join.
  template <class Resolver = TfConfigResolver>
  MultiWorker() : MultiWorker(typename detail::DefaultResolver<Resolver>::Type{}, MultiWorkerOptions{}) {}
  /// Uses the processes that TF_CONFIG lists or a launcher started, with `options`.
  template <class Resolver = TfConfigResolver>
  explicit MultiWorker(const MultiWorkerOptions& options)
      : MultiWorker(typename detail::DefaultResolver<Resolver>::Type{}, options) {}
  /// Creates `replicas` replicas in each process.
  template <class Resolver = TfConfigResolver>
  explicit MultiWorker(std::size_t replicas)
      : MultiWorker(typename detail::DefaultResolver<Resolver>::Type{}, MultiWorker::with_replicas_here(replicas)) {}
  /// Uses the processes of `resolver`.
  template <ClusterResolver R>
  explicit MultiWorker(const R& resolver, const MultiWorkerOptions& options = {})
      : MultiWorker(World{resolver, options.start_timeout, options.thread_level},
                    with_accelerators(resolver, options)) {}
  /// Uses the processes of the program's communicator, `mpi::ref(comm)`. The strategy then does not initialise or
  /// finalise MPI, nor bind the calling thread unless the options request it.
  explicit MultiWorker(typename Net::Reference comm, const MultiWorkerOptions& options = {})
      : MultiWorker(World{comm}, options) {}

  /// The task of this process in the cluster; empty without a cluster.
  [[nodiscard]] const std::optional<Task>& task() const noexcept { return this->workers_part().world().task(); }

  /// The options of collectives that calls do not override.
  [[nodiscard]] const CommunicationOptions& communication() const noexcept { return options_.communication; }

  /// Returns a strategy of the processes that pass the same `color`, with the same options, in the order of `key` and
  /// then of their numbers here. Parts run independently, and learn of a failure in another part only at the next call
  /// of all. This strategy must outlive the parts. A collective call of the processes, outside replica functions.
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
  /// The resolver's number of devices is the default; without devices, uses the CPU (spec A10). Binds threads, because
  /// the program does not own MPI.
  template <class R>
  static MultiWorkerOptions with_accelerators(const R& resolver, MultiWorkerOptions options) {
    if (!options.replicas && options.devices.empty())
      options.replicas = std::max<std::size_t>(resolver.num_accelerators().value_or(1), 1);
    options.pinned = options.pinned.value_or(true);
    return options;
  }

  MultiWorkerOptions options_;
};

/// Error message for a MultiWorker without a policy.
template <class... Arguments>
MultiWorker(const Arguments&...) -> MultiWorker<detail::NoOps>;

}  // namespace dist

#ifdef DIST_COMPILED
#include <dist/comm/hierarchical_neighbor_exchange.hpp>

namespace dist::detail {
using RingOfMembers = RingAllReduce::On<MpiNetwork::Membership>;
using ChoiceOfMembers = MessageCollectives<MpiNetwork::Membership, MessageChoice<MpiNetwork::Membership>>;
}  // namespace dist::detail

/// The templates that compiled_mpi.ipp instantiates: levels of collectives above `Wire`, and the strategy of a policy.
#define DIST_HIERARCHICAL_TEMPLATES(declared, Wire)                                                         \
  declared template class dist::Hierarchical<dist::NodeAllReduce::On<dist::NodeCommunicator>, Wire>;        \
  declared template class dist::Hierarchical<dist::NodeAllReduce::On<dist::NodeReplicaCommunicator>, Wire>; \
  declared template struct dist::detail::NeighborExchange<                                                  \
      dist::Hierarchical<dist::NodeAllReduce::On<dist::NodeReplicaCommunicator>, Wire>>;                    \
  declared template class dist::BackgroundCollectives<                                                      \
      dist::Hierarchical<dist::NodeAllReduce::On<dist::NodeCommunicator>, Wire>>;
#define DIST_MULTI_WORKER_TEMPLATES(declared, Ops)                                                        \
  declared template class dist::Workers<Ops, dist::MpiNetwork>;                                           \
  declared template class dist::BasicStrategy<dist::MultiWorker<Ops>,                                     \
                                              dist::ThreadReplicas<dist::ThreadAllReduce, dist::Cpu>,     \
                                              dist::Workers<Ops, dist::MpiNetwork>, dist::MirroredStore>; \
  declared template class dist::MultiWorker<Ops>;                                                         \
  declared template void dist::ReplicaContext<dist::MultiWorker<Ops>>::reduce_bytes(                      \
      const dist::Reduction&, std::span<std::byte>, const dist::CommunicationOptions&) const;

DIST_HIERARCHICAL_TEMPLATES(extern, dist::detail::RingOfMembers)
DIST_HIERARCHICAL_TEMPLATES(extern, dist::detail::ChoiceOfMembers)
DIST_MULTI_WORKER_TEMPLATES(extern, dist::RingAllReduce)
#endif
