#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/comm/background.hpp>
#include <dist/comm/communication_options.hpp>
#include <dist/comm/cross_device_ops.hpp>
#include <dist/comm/failure_notice.hpp>
#include <dist/comm/group_layout.hpp>
#include <dist/comm/hierarchical.hpp>
#include <dist/comm/make_collectives.hpp>
#include <dist/comm/messages/algorithm_thresholds.hpp>
#include <dist/comm/network.hpp>
#include <dist/comm/node/communicator.hpp>
#include <dist/comm/node/node_all_reduce.hpp>
#include <dist/comm/node/node_replicas.hpp>
#include <dist/comm/ring_all_reduce.hpp>
#include <dist/comm/thread/communicator.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/threads.hpp>
#include <dist/data/agreement.hpp>
#include <dist/device/arena.hpp>
#include <dist/device/device.hpp>
#include <dist/strategy/thread_replicas.hpp>

namespace dist {

/// A data::Agreement of a MultiWorker's processes on the end of their data; does nothing for a single process.
template <data::Agreement WorkerCollectives>
class WorkerAgreement {
 public:
  /// One pass over the data.
  class Pass {
   public:
    Pass() = default;
    /// A pass that the processes decide by `between`.
    explicit Pass(typename WorkerCollectives::Pass between) : between_(std::move(between)) {}

    void start(bool holds) {
      if (between_)
        between_->start(holds);
      else
        alone_.start(holds);
    }
    void wait() {
      if (between_) between_->wait();
    }
    [[nodiscard]] bool is_done() const { return !between_ || between_->is_done(); }
    void note_thrown_by_data(std::string_view what) {
      if (between_) between_->note_thrown_by_data(what);
    }
    [[nodiscard]] bool any() { return between_ ? between_->any() : alone_.any(); }

   private:
    std::optional<typename WorkerCollectives::Pass> between_;
    data::NoAgreement::Pass alone_;
  };

  /// For a single process.
  WorkerAgreement() = default;
  /// For several processes, which communicate by `between`.
  explicit WorkerAgreement(WorkerCollectives between) : between_(std::move(between)) {}

  [[nodiscard]] Pass begin() const { return between_ ? Pass{between_->begin()} : Pass{}; }
  /// Notifies the other processes why this one will not begin the next pass.
  void cancel(std::string_view why) const noexcept {
    if (between_) between_->cancel(why);
  }
  /// The exception of this process's data that ended the last pass, if any.
  [[nodiscard]] std::string thrown_by_data() const { return between_ ? between_->thrown_by_data() : std::string{}; }

 private:
  std::optional<WorkerCollectives> between_;
};

class PeerHealth;
class ThreadBinding;
class Watchdog;

/// Options of a MultiWorker.
struct MultiWorkerOptions {
  /// Replicas per process, the same in all (spec A10). Default: the resolver's number of devices, or 1.
  std::optional<std::size_t> replicas = std::nullopt;
  /// One replica on each of these, in order: {"/gpu:2", "/gpu:3"}. Empty: devices chosen by their type; the processes
  /// of a host divide its GPUs, and each uses the first of its share.
  std::vector<std::string> devices = {};
  /// True if a node's processes divide its processors, if unbound and sufficient: the thread that creates the strategy
  /// is bound while it exists, and other replicas' threads to one processor each. By default, the thread stays unbound
  /// in a program that owns MPI, because later threads, such as an OpenMP team, inherit its processors. Programs with
  /// such teams should let the launcher bind processes, with one replica each.
  std::optional<bool> pinned = std::nullopt;
  /// True if a node's processes use its shared memory, and one of them communicates with other nodes. Default: true,
  /// unless the policy communicates with all processes itself, like MpiAllReduce.
  std::optional<bool> hierarchical = std::nullopt;
  /// Checks before a collective between nodes; within a node, calls are always checked, with the values.
  CollectiveChecks checks = CollectiveChecks::calls;
  /// Sizes in bytes up to which AutoAllReduce uses each algorithm between nodes, the same in all processes. Default:
  /// typical or measured ones (`measure_thresholds`). Other policies reject both options.
  std::optional<AlgorithmThresholds> thresholds = std::nullopt;
  /// Measures thresholds at start if none are given. They may differ between starts, and with them the last bits of
  /// sums.
  bool measure_thresholds = false;
  /// The default timeout is DIST_COLLECTIVE_TIMEOUT seconds, or 10 minutes.
  CommunicationOptions communication = {};
  /// The threads that may use the network, if this library starts it. With `multiple`, background collectives
  /// (nn::OverlappedAllReduce) progress while replicas compute.
  ThreadLevel thread_level = ThreadLevel::funneled;
  /// Timeout of the processes' start.
  std::chrono::milliseconds start_timeout = std::chrono::minutes{5};
};

namespace detail {

[[nodiscard]] inline std::size_t replicas_of(const MultiWorkerOptions& options) noexcept {
  return options.replicas.value_or(std::max<std::size_t>(options.devices.size(), 1));
}

/// Requirements on the network that connects a strategy's processes: an empty type with these members:
/// - `World`: the processes, however they were started, with `is_alone()`, `size()`, this process's `task()`, and the
///   `source()` of the data. `connect(options)` returns a `Membership`; a `World::JobScope` exists while the processes
///   work together; `known_peers()` returns the state of the others, and `end_strategy(health, timeout)` stores its
///   final value;
/// - `Membership`, a Network;
/// - `Agreement`, a data::Agreement constructed from a membership and its options, for the end of the data.
template <class Net>
concept WorkersNetwork = std::is_empty_v<Net> && Network<typename Net::Membership> &&
    data::Agreement<typename Net::Agreement> &&
    requires(const typename Net::World world, typename Net::World::JobScope work, const NetworkOptions& options,
             const std::shared_ptr<PeerHealth>& health, std::chrono::nanoseconds timeout) {
  { world.is_alone() } -> std::same_as<bool>;
  { world.size() } -> std::same_as<std::size_t>;
  { world.connect(options) } -> std::same_as<typename Net::Membership>;
  { world.known_peers() } -> std::same_as<std::shared_ptr<PeerHealth>>;
  world.end_strategy(health, timeout);
  { work.failing() } -> std::same_as<bool>;
  work.fail();
};

/// Policies that communicate with all processes themselves, even within a node.
template <class Ops>
concept JoinsAllProcesses = requires {
  requires Ops::joins_all_processes;
};

/// Message-based collectives that choose their algorithm at each call.
template <class On, class Membership>
concept ChoosesByThresholds = std::constructible_from<On, Membership, AlgorithmThresholds>;

/// The policy of collectives between nodes: `Ops`, or RingAllReduce for policies without any.
template <class Ops, class Membership>
using OpsBetweenNodes =
    std::conditional_t<!std::same_as<Ops, NoOps> && !std::same_as<Ops, NodeAllReduce> && fits<Ops, Membership>, Ops,
                       RingAllReduce>;

/// The policy between nodes, or all processes, checked with one error message each.
template <class Ops, class Membership>
struct BetweenNodes {
  static constexpr bool is_named = !std::same_as<Ops, NoOps>;
  static_assert(is_named,
                "MultiWorker needs a reduction policy: dist::MultiWorker<dist::RingAllReduce>, or with MpiAllReduce, "
                "NodeAllReduce, AutoAllReduce or, for GPUs, NcclAllReduce");
  static constexpr bool joins_processes = fits<Ops, Membership> || OpsOfWorkers<Ops>;
  static_assert(
      joins_processes,
      "this policy works between threads, and the workers of MultiWorker are processes: use RingAllReduce, "
      "MpiAllReduce, NodeAllReduce, AutoAllReduce or, for GPUs, NcclAllReduce, or use Mirrored with this policy");

  static constexpr bool hierarchical = !JoinsAllProcesses<Ops>;
  static constexpr bool one_node_only = false;
};
template <class Membership>
struct BetweenNodes<NodeAllReduce, Membership> : BetweenNodes<RingAllReduce, Membership> {
  static constexpr bool one_node_only = true;
};

struct NodeMemory;

/// A policy's properties while processes join.
struct WorkerPolicy {
  std::string_view name;
  bool hierarchical;  ///< default of MultiWorkerOptions::hierarchical
  bool one_node_only;
  bool has_thresholds;  ///< supports MultiWorkerOptions::thresholds
};

/// The processes of a MultiWorker, without their collectives: how they were started, where each runs, and their shared
/// memory and messages.
template <WorkersNetwork Net>
class WorkerProcesses {
 public:
  using World = typename Net::World;
  using Membership = typename Net::Membership;
  using Agreement = WorkerAgreement<typename Net::Agreement>;

  WorkerProcesses(const WorkerProcesses&) = delete;
  WorkerProcesses& operator=(const WorkerProcesses&) = delete;

  [[nodiscard]] const World& world() const noexcept { return world_; }
  [[nodiscard]] const GroupLayout& layout() const noexcept { return *layout_; }
  /// True without messages between nodes, or if the network allows any thread.
  [[nodiscard]] bool any_thread_may_communicate() const {
    return layout_->groups() == 1 || member_ != 0 || all_->any_thread_may_communicate();
  }
  [[nodiscard]] std::chrono::nanoseconds timeout() const noexcept { return timeout_; }
  /// The membership of all processes; empty if this process is alone.
  [[nodiscard]] const std::optional<Membership>& membership() const noexcept { return all_; }
  [[nodiscard]] const std::shared_ptr<Arena>& memory() const noexcept { return arena_; }
  /// True if every replica of this host has its own processor.
  [[nodiscard]] bool owns_cores() const noexcept { return owns_cores_; }
  /// The number of this process on its host.
  [[nodiscard]] LocalProcesses on_host() const;
  /// The state of the other processes; outlives the strategy.
  [[nodiscard]] PeerHealth& health() const noexcept { return *health_; }

 protected:
  /// The group and network for collectives, one per thread that calls them.
  struct Endpoints {
    NodeGroup& window;
    std::optional<Membership> wire;  ///< between nodes, in processes that communicate there
  };

  WorkerProcesses(World world, const MultiWorkerOptions& options, const WorkerPolicy& policy);
  ~WorkerProcesses();

  /// False in a forked child, which leaves the network to its parent.
  [[nodiscard]] bool is_here() const noexcept { return process_.is_here(); }

  /// The endpoints of the thread that created the strategy.
  [[nodiscard]] Endpoints first_endpoints() const;
  /// Finds this node's other processes again, for more endpoints. A collective call.
  [[nodiscard]] std::vector<NodeGroup::Peer> find_peers_again();
  /// Creates endpoints for another thread. `reached` is how many processes each one found on its node, including
  /// itself. A collective call.
  [[nodiscard]] Endpoints more_endpoints(std::vector<NodeGroup::Peer> peers, std::span<const std::size_t> reached);

  /// True before the agreement of several processes exists.
  [[nodiscard]] bool has_to_agree() const noexcept { return all_ && !agreement_; }
  /// The agreement, created at the first call, which is collective.
  [[nodiscard]] Agreement agreement() const;

  /// Returns why an exception ends the work, if one does.
  [[nodiscard]] std::string why_failing() const;
  void abandon_agreement(std::string_view why) const noexcept;
  /// Ends the work: orderly, unless it is failing or `broken`.
  void finish(bool broken);

 private:
  struct ReplicaCollectives;
  struct Settings;

  [[nodiscard]] static std::chrono::nanoseconds default_timeout();
  /// `peers` are this node's other processes, `number` is the number of the mailboxes there. A collective call.
  void join(ReplicaCollectives& joined, std::size_t number, std::vector<NodeGroup::Peer> peers, SpinBudget budget);

  [[nodiscard]] NetworkOptions options_of_network(Watchdog& watchdog);

  void require_equal_settings(const MultiWorkerOptions& options, std::string_view policy, bool separate);

  /// Binds this process to its part of the host's processors, if all processes may use the same ones and there are
  /// enough. Returns true if every replica of the host has its own.
  [[nodiscard]] bool share_processors(const MultiWorkerOptions& options);

  OwnProcess process_;
  typename World::JobScope work_;
  World world_;
  std::chrono::nanoseconds timeout_;
  CollectiveChecks checks_;
  std::shared_ptr<PeerHealth> health_;  // used when the process exits
  std::shared_ptr<NodeMemory> memory_;
  std::shared_ptr<Arena> arena_;
  std::unique_ptr<GroupLayout> layout_;
  std::size_t member_ = 0;  // of this node's group
  bool owns_cores_ = true;
  std::unique_ptr<ThreadBinding> binding_;                   // of the thread that created the strategy
  std::vector<std::unique_ptr<ReplicaCollectives>> joined_;  // the first is for the thread that created the strategy
  std::optional<Membership> all_;                            // uses the watchdog of the first
  mutable std::optional<Agreement> agreement_;
};

}  // namespace detail

/// The processes of a strategy, connected by `Net`, and the collectives between them, which reduce with `Ops`. A
/// process's replicas are threads; all replicas on a node form one group, which shares the memory of variables.
template <class Ops, detail::WorkersNetwork Net>
class Workers : public detail::WorkerProcesses<Net> {
  using Processes = detail::WorkerProcesses<Net>;
  using Policy = detail::BetweenNodes<Ops, typename Net::Membership>;
  static constexpr bool is_hierarchical = Policy::hierarchical;  // rejects an invalid policy, before anything else
  using WireOps =
      typename detail::OpsBetweenNodes<Ops, typename Net::Membership>::template On<typename Net::Membership>;
  using NodeOps = NodeAllReduce::On<NodeCommunicator>;
  using ReplicaOps = NodeAllReduce::On<NodeReplicaCommunicator>;
  using OnHost = Hierarchical<ReplicaOps, WireOps>;

 public:
  /// The collectives between the processes.
  using WorkerCollectives = Hierarchical<NodeOps, WireOps>;
  /// The collectives between all replicas: a node's replicas are one group. The policy owns device memory.
  template <class OfProcess>
  using ReplicaCollectives = typename detail::OfWorkers<Ops, OnHost>::Collectives;
  /// The state for these collectives, from which they are constructed.
  using CollectiveState = typename detail::OfWorkers<Ops, OnHost>::State;

  /// Connects the processes of `world`. A collective call. Throws the errors of MultiWorker's constructors.
  Workers(typename Net::World world, const MultiWorkerOptions& options)
      : Processes(std::move(world), options, policy()), thresholds_(options.thresholds) {
    const typename Processes::Endpoints place = this->first_endpoints();
    if constexpr (has_thresholds)
      if (place.wire && !thresholds_ && options.measure_thresholds)
        thresholds_ = measured_thresholds(*place.wire, [] {
          return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
        });
    between_.push_back(collectives_at(place));
  }
  ~Workers() {
    if (!this->is_here()) return;
    if (const std::string why = this->why_failing(); !why.empty()) {
      between().begin_attempt();
      between().cancel(FailureNotice{why}.for_good());
      this->abandon_agreement(why);
    }
    bool broken = false;
    for (const std::unique_ptr<WorkerCollectives>& each : between_) broken = broken || each->is_broken();
    this->finish(broken);
  }

  /// The collectives between the processes.
  [[nodiscard]] const WorkerCollectives& between() const noexcept { return *between_.front(); }
  /// The number of processes.
  [[nodiscard]] std::size_t size() const noexcept { return this->layout().size(); }
  /// The number of this process, from 0.
  [[nodiscard]] std::size_t rank() const noexcept { return this->layout().rank(); }

  /// Adapts the replicas' options to the shared host.
  [[nodiscard]] MirroredOptions adjusted(MirroredOptions options) const {
    options.pinned = options.pinned && this->owns_cores();
    options.on_host = this->on_host();
    options.communication.timeout = this->timeout();
    return options;
  }
  /// Sets this process's number of replicas. Called once, before `join`.
  void admit(std::size_t replicas) {
    replicas_ = std::make_unique<NodeReplicas>(between().lower().communicator(), *Processes::memory(), replicas);
    for (std::size_t replica = 0; replica < replicas; ++replica)
      layouts_.push_back(this->layout().divided(replicas, replica));
  }
  /// Returns the collectives of all replicas, for a replica with these within its process.
  template <class OfProcess, class Queue>
  [[nodiscard]] ReplicaCollectives<OfProcess> join(const OfProcess& of_process, [[maybe_unused]] const Queue& queue,
                                                   [[maybe_unused]] const CollectiveState& joint) const {
    const ThreadCommunicator& here = of_process.communicator();
    const auto on_host = [&]() -> OnHost {
      return {layouts_[here.rank()], ReplicaOps{NodeReplicaCommunicator{*replicas_, here, this->timeout()}},
              here.rank() == 0 ? between().upper() : std::nullopt, this->timeout()};
    };
    if constexpr (OpsOfWorkers<Ops>)
      return {on_host(), queue, joint, this->timeout()};
    else
      return on_host();
  }
  /// The memory of variables: shared within the node on the host, otherwise on `devices`, allocated by the policy.
  using Processes::memory;
  /// Memory with a region on each of `devices`; on the host, memory that the processes of a node share.
  template <class Memory, class Devices, class Replicas>
  [[nodiscard]] std::shared_ptr<Memory> memory([[maybe_unused]] const Devices& devices, const Replicas&,
                                               [[maybe_unused]] const CollectiveState& joint) const {
    if constexpr (std::same_as<Memory, Arena>)
      return Processes::memory();
    else
      return detail::make_memory<Memory>(devices, joint);
  }
  /// Creates collectives with their own thread if it may communicate, otherwise progressing while a caller waits. A
  /// collective call.
  template <class Background>
  [[nodiscard]] std::shared_ptr<Background> make_background() {
    return std::make_shared<Background>(one_more_between(), this->any_thread_may_communicate()
                                                                ? BackgroundProgress::by_a_thread
                                                                : BackgroundProgress::while_waiting);
  }
  /// Creates collectives with separate mailboxes and messages from `between()`, for concurrent use by another thread.
  /// They live as long as this object. A collective call.
  [[nodiscard]] WorkerCollectives one_more_between() {
    between().agree({.operation = "collectives in the background"});
    std::vector<NodeGroup::Peer> peers = this->find_peers_again();
    std::vector<std::size_t> reached(this->layout().size());
    between().all_gather_values("memory mapped again", peers.size() + 1, std::span{reached});
    return *between_.emplace_back(collectives_at(this->more_endpoints(std::move(peers), reached)));
  }
  /// The agreement, created at the first call, which is collective.
  [[nodiscard]] typename Processes::Agreement agreement() const {
    if (this->has_to_agree()) between().agree({.operation = "distribution of a dataset"});
    return Processes::agreement();
  }

 private:
  static constexpr bool has_thresholds = detail::ChoosesByThresholds<WireOps, typename Net::Membership>;

  /// Avoids further errors after an invalid policy.
  [[nodiscard]] static constexpr detail::WorkerPolicy policy() {
    if constexpr (Policy::is_named)
      return {Ops::name, is_hierarchical, Policy::one_node_only, has_thresholds};
    else
      return {};
  }

  [[nodiscard]] std::unique_ptr<WorkerCollectives> collectives_at(const typename Processes::Endpoints& place) const {
    std::optional<WireOps> wire;
    if (place.wire) wire.emplace(*place.wire);
    if constexpr (has_thresholds)
      if (wire && thresholds_) wire.emplace(*place.wire, *thresholds_);
    return std::make_unique<WorkerCollectives>(this->layout(), NodeOps{NodeCommunicator{place.window}}, std::move(wire),
                                               this->timeout());
  }

  std::optional<AlgorithmThresholds> thresholds_;
  std::vector<std::unique_ptr<WorkerCollectives>> between_;  // the first is for the thread that created the strategy
  std::unique_ptr<NodeReplicas> replicas_;
  std::vector<GroupLayout> layouts_;  // one per replica of this process
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/strategy/workers.ipp>
#endif
