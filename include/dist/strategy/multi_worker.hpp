#pragma once

#include <concepts>
#include <cstddef>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/cluster/cluster_resolver.hpp>
#include <dist/cluster/mpi/mpi_network.hpp>
#include <dist/cluster/task.hpp>
#include <dist/comm/background.hpp>
#include <dist/comm/communication_options.hpp>
#include <dist/comm/cross_device_ops.hpp>
#include <dist/comm/group_layout.hpp>
#include <dist/comm/hierarchical.hpp>
#include <dist/comm/memory/shared_memory_all_reduce.hpp>
#include <dist/comm/node/node_all_reduce.hpp>
#include <dist/comm/node/node_replicas.hpp>
#include <dist/comm/thread/communicator.hpp>
#include <dist/context/input_context.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/pointers.hpp>
#include <dist/data/distribute_options.hpp>
#include <dist/device/cpu.hpp>
#include <dist/strategy/threaded.hpp>
#include <dist/strategy/worker_agreement.hpp>
#include <dist/strategy/worker_group.hpp>
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
  static std::unique_ptr<Hosted> join(const ClusterSpec&, std::size_t, std::string_view, std::chrono::milliseconds) {
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

[[nodiscard]] inline ThreadedOptions threaded_options(const MultiWorkerOptions& options,
                                                      std::chrono::nanoseconds timeout, bool owns_cores) {
  ThreadedOptions threaded;
  threaded.replicas = replicas_of(options);
  threaded.pinned = options.pinned && owns_cores;
  threaded.communication = options.communication;
  threaded.communication.timeout = timeout;
  return threaded;
}
}  // namespace detail

/// Synchronous training on several processes, each with one or more replicas, on one machine or many (spec A07): every
/// variable has a copy on every replica of every process. All processes run the same program and make the same calls;
/// what sees all replicas at once, such as `reduce`, is a collective call of the processes.
///
/// `Ops` says how processes reduce: RingAllReduce (between nodes; the processes of a node meet in its memory),
/// MpiAllReduce (all processes, as MPI does it), NodeAllReduce (one node only), AutoAllReduce. The replicas of
/// a process are threads that meet in its memory. `Net` joins the processes (detail::WorkersNetwork). Sums are made in a fixed order, which is not that of the ranks.
///
/// Only the thread that makes the strategy may call `run` and others: it uses the network. Make it before the
/// program starts threads, because the start of MPI may fork.
template <class Ops, class DeviceType = Cpu, class Net = MpiNetwork>
class MultiWorker : private detail::WorkerGroup<Ops, Net>,
                    public Threaded<MultiWorker<Ops, DeviceType, Net>, SharedMemoryAllReduce, DeviceType,
                                    typename detail::WorkerGroup<Ops, Net>::Replicas,
                                    typename detail::WorkerGroup<Ops, Net>::Workers> {
  static_assert(std::same_as<DeviceType, Cpu>, "MultiWorker has replicas on Cpu; on other devices it comes later");

  using Group = detail::WorkerGroup<Ops, Net>;
  using World = typename Net::World;
  using Base = Threaded<MultiWorker, SharedMemoryAllReduce, DeviceType,
                        typename detail::WorkerGroup<Ops, Net>::Replicas, typename Group::Workers>;

 public:
  using Store = MirroredStore;
  using Memory = typename DeviceType::Memory;

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
  /// finalised then.
  explicit MultiWorker(typename Net::Reference comm, const MultiWorkerOptions& options = {})
      : MultiWorker(World{comm}, options) {}

  [[nodiscard]] const std::shared_ptr<Memory>& memory() const noexcept { return Group::memory(); }
  [[nodiscard]] const std::shared_ptr<Memory>& replica_memory() const noexcept { return Group::memory(); }

  /// The processes, and which of them this one is.
  [[nodiscard]] std::size_t num_workers() const noexcept { return Group::layout().size(); }
  [[nodiscard]] std::size_t worker() const noexcept { return Group::layout().rank(); }
  /// Whether this process does what only one may do, such as writing checkpoints that others read (spec A15,
  /// M09).
  [[nodiscard]] bool is_chief() const noexcept { return worker() == 0; }
  /// What this process is in its cluster; none where there is no cluster.
  [[nodiscard]] const std::optional<Task>& task() const noexcept { return Group::world().task(); }

  [[nodiscard]] std::size_t num_replicas_in_sync() const noexcept { return num_workers() * this->num_local_replicas(); }
  [[nodiscard]] std::size_t first_local_replica() const noexcept { return worker() * this->num_local_replicas(); }
  /// The options as they were given.
  [[nodiscard]] const CommunicationOptions& communication() const noexcept { return options_.communication; }
  /// The collectives between the processes, for code outside replica functions.
  [[nodiscard]] const typename Group::Workers& workers() const noexcept { return Group::workers(); }

  /// A strategy of the processes that give the same `color`, which are its workers in the order of `key`, and then of their
  /// numbers here, with the same options. Parts work each at its own pace, and a failure in one is not known in others
  /// before the next call of all; this strategy goes on as before, and outlives them. A collective call of the processes,
  /// outside replica functions.
  [[nodiscard]] MultiWorker split(std::size_t color, std::size_t key = 0) {
    this->require_outside("split", "use replica.split");
    workers().agree({.operation = "split"});
    const typename World::Part part{Group::world(), Group::membership(), color, key};
    return MultiWorker{part.world(), options_};
  }

  /// The context of this process's pipeline (spec I20).
  [[nodiscard]] InputContext input_context() const { return {num_workers(), worker(), num_replicas_in_sync()}; }
  /// How the processes agree on the end of their data (spec I24).
  [[nodiscard]] typename Group::Agreement agreement() const { return Group::agreement(); }

  /// "MultiWorker<RingAllReduce, Cpu>: 4 replicas, 2 of them here, worker 0 of 2 on 1 node (TF_CONFIG)"
  [[nodiscard]] std::string describe() const {
    return text("MultiWorker<", Ops::name, ", ", DeviceType::name, ">: ", num_replicas_in_sync(),
                num_replicas_in_sync() == 1 ? " replica, " : " replicas, ", this->num_local_replicas(),
                " of them here, worker ", worker(), " of ", num_workers(), " on ", Group::layout().groups(),
                Group::layout().groups() == 1 ? " node (" : " nodes (", Group::world().source(), ")");
  }

 private:
  friend Base;
  friend class StrategyInterface<MultiWorker, DeviceType>;

  MultiWorker(World world, const MultiWorkerOptions& options)
      : Group(std::move(world), options),
        Base(detail::threaded_options(options, Group::timeout(), Group::owns_cores())),
        options_(options),
        replicas_(std::make_unique<NodeReplicas>(workers().lower().communicator(), *Group::memory(),
                                                 this->num_local_replicas())) {
    this->set_replica_ids(first_local_replica(), num_replicas_in_sync());
    detail::name_traced_process(worker(), text("worker ", worker()));
    for (std::size_t replica = 0; replica < this->num_local_replicas(); ++replica)
      layouts_.push_back(Group::layout().divided(this->num_local_replicas(), replica));
  }

  static MultiWorkerOptions with_replicas_here(std::size_t replicas) {
    MultiWorkerOptions options;
    options.replicas = replicas;
    return options;
  }
  /// The resolver's number of devices counts where the options leave it open; without devices there is the CPU (spec
  /// A10).
  template <class R>
  static MultiWorkerOptions with_accelerators(const R& resolver, MultiWorkerOptions options) {
    if (!options.replicas) options.replicas = std::max<std::size_t>(resolver.num_accelerators().value_or(1), 1);
    return options;
  }

  [[nodiscard]] typename Base::Collectives collectives_from(
      const SharedMemoryAllReduce::On<ThreadCommunicator>& of_process) const {
    const ThreadCommunicator& here = of_process.communicator();
    using OfAll = typename Base::Collectives;
    return OfAll{
        layouts_[here.rank()],
        NodeAllReduce::On<NodeReplicaCommunicator>{NodeReplicaCommunicator{*replicas_, here, Group::timeout()}},
        here.rank() == 0 ? workers().upper() : std::nullopt, Group::timeout()};
  }

  /// They run in a thread of their own where that may communicate, else while a caller waits for them.
  [[nodiscard]] std::shared_ptr<BackgroundCollectives<typename Group::Workers>> make_background() {
    return std::make_shared<BackgroundCollectives<typename Group::Workers>>(
        Group::more_workers(),
        Group::any_thread_may_communicate() ? BackgroundProgress::by_a_thread : BackgroundProgress::while_waiting);
  }

  MultiWorkerOptions options_;
  std::unique_ptr<NodeReplicas> replicas_;
  std::vector<GroupLayout> layouts_;  // as each replica of this process sees it
};

/// A MultiWorker without a policy, for a sentence.
template <class... Arguments>
MultiWorker(const Arguments&...) -> MultiWorker<detail::NoOps>;

}  // namespace dist
