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
#include <dist/comm/messages/measured_thresholds.hpp>
#include <dist/comm/network.hpp>
#include <dist/comm/node/communicator.hpp>
#include <dist/comm/node/node_all_reduce.hpp>
#include <dist/comm/node/node_replicas.hpp>
#include <dist/comm/ring_all_reduce.hpp>
#include <dist/comm/thread/communicator.hpp>
#include <dist/comm/thread_level.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/threads.hpp>
#include <dist/data/agreement.hpp>
#include <dist/device/arena.hpp>
#include <dist/device/device.hpp>
#include <dist/strategy/thread_replicas.hpp>
#include <dist/strategy/worker_agreement.hpp>

namespace dist {

class PeerHealth;
class ThreadBinding;
class Watchdog;

/// How the processes of a MultiWorker work together.
struct MultiWorkerOptions {
  /// The replicas of each process, the same number in all (spec A10). Left out: the devices that the resolver gives a
  /// process, or 1.
  std::optional<std::size_t> replicas = std::nullopt;
  /// One replica on each of these, in this order: {"/gpu:2", "/gpu:3"}. None: those that the devices' type places them on;
  /// the processes of a host share out its GPUs, each process the first ones of its part.
  std::vector<std::string> devices = {};
  /// True if the processes of a node share its processors out among them, where they are unbound and there are enough: the
  /// thread that makes the strategy is bound as long as the strategy lives, and other replicas' threads to a processor each.
  /// Left out, the thread of a program that owns MPI stays unbound, because threads that it starts later, such as a team of
  /// OpenMP, inherit its processors. A program with such teams lets the launcher bind processes, one replica in each.
  std::optional<bool> pinned = std::nullopt;
  /// Whether the processes of a node meet in its memory and one of them goes to the other nodes. Left out: unless the
  /// policy talks to all processes itself, as MpiAllReduce does.
  std::optional<bool> hierarchical = std::nullopt;
  /// What is checked before a collective between nodes; within a node, where the check comes with the values, calls
  /// always are.
  CollectiveChecks checks = CollectiveChecks::calls;
  /// Up to how many bytes AutoAllReduce takes which algorithm between nodes, the same in all processes. Left out: measured
  /// at the start, or what follows from usual costs. Other policies refuse both options.
  std::optional<AlgorithmThresholds> thresholds = std::nullopt;
  /// Whether thresholds that are left out are measured at the start. A start may measure others than the one before, and
  /// then sums have other last bits.
  bool measure_thresholds = false;
  /// How collectives are done. The timeout: where none is chosen, DIST_COLLECTIVE_TIMEOUT seconds, else 10 minutes.
  CommunicationOptions communication = {};
  /// Which threads are to use the network where this library opens it. With `multiple`, collectives in the background
  /// (nn::OverlappedAllReduce) go on between nodes while replicas compute.
  ThreadLevel thread_level = ThreadLevel::funneled;
  /// The longest that the processes wait for each other at the start.
  std::chrono::milliseconds start_timeout = std::chrono::minutes{5};
};

namespace detail {

[[nodiscard]] inline std::size_t replicas_of(const MultiWorkerOptions& options) noexcept {
  return options.replicas.value_or(std::max<std::size_t>(options.devices.size(), 1));
}

/// What a strategy needs of the network that joins its processes. A network is an empty type that names:
/// - `World`: the processes, however they were started. It says whether this one `is_alone()`, their `size()`, its
///   `task()` and the `source()` of these; `connect(options)` gives a `Membership`; a `World::JobScope` lives as long as the
///   processes work together, `known_peers()` is what this process knows about the others, and `end_strategy(health,
///   timeout)` what it knew at last;
/// - `Membership`, a Network;
/// - `Agreement`, a data::Agreement made from a membership and its options, through which the processes agree on the end
///   of their data.
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

/// Policies that talk to all processes themselves, also to those of one node.
template <class Ops>
concept JoinsAllProcesses = requires {
  requires Ops::joins_all_processes;
};

/// Collectives over messages that choose their algorithm call by call.
template <class On, class Membership>
concept ChoosesByThresholds = std::constructible_from<On, Membership, AlgorithmThresholds>;

/// The policy whose collectives are between the nodes: `Ops`, or RingAllReduce for those that have none there.
template <class Ops, class Membership>
using OpsBetweenNodes =
    std::conditional_t<!std::same_as<Ops, NoOps> && !std::same_as<Ops, NodeAllReduce> && fits<Ops, Membership>, Ops,
                       RingAllReduce>;

/// The policy between the nodes, or between all processes. Refuses, in a sentence, what does not work between them.
template <class Ops, class Membership>
struct BetweenNodes {
  static constexpr bool is_named = !std::same_as<Ops, NoOps>;
  static_assert(is_named,
                "MultiWorker names how its processes reduce: dist::MultiWorker<dist::RingAllReduce>, or with "
                "MpiAllReduce, NodeAllReduce or AutoAllReduce, for GPUs with NcclAllReduce");
  static constexpr bool joins_processes = fits<Ops, Membership> || OpsOfWorkers<Ops>;
  static_assert(joins_processes,
                "this policy works between threads, and the workers of MultiWorker are processes: use RingAllReduce, "
                "MpiAllReduce, NodeAllReduce or AutoAllReduce, for GPUs NcclAllReduce, or Mirrored with this policy");

  static constexpr bool hierarchical = !JoinsAllProcesses<Ops>;
  static constexpr bool one_node_only = false;
};
template <class Membership>
struct BetweenNodes<NodeAllReduce, Membership> : BetweenNodes<RingAllReduce, Membership> {
  static constexpr bool one_node_only = true;
};

struct NodeMemory;

/// A policy, as the processes look at it while they join.
struct WorkerPolicy {
  std::string_view name;
  bool hierarchical;  ///< without MultiWorkerOptions::hierarchical
  bool one_node_only;
  bool has_thresholds;  ///< of which MultiWorkerOptions::thresholds are
};

/// The processes of a MultiWorker, without the collectives between them: how they were started, where each one runs, and
/// the memory and messages through which they meet.
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
  /// Whether any thread may use their collectives: where messages are passed, if the network lets it.
  [[nodiscard]] bool any_thread_may_communicate() const {
    return layout_->groups() == 1 || member_ != 0 || all_->any_thread_may_communicate();
  }
  [[nodiscard]] std::chrono::nanoseconds timeout() const noexcept { return timeout_; }
  /// The membership of all of them; none where this process is alone.
  [[nodiscard]] const std::optional<Membership>& membership() const noexcept { return all_; }
  [[nodiscard]] const std::shared_ptr<Arena>& memory() const noexcept { return arena_; }
  /// Whether every replica of this host has a processor of its own.
  [[nodiscard]] bool owns_cores() const noexcept { return owns_cores_; }
  /// Which of the processes on its host this one is.
  [[nodiscard]] LocalProcesses on_host() const;
  /// What this process knows about the others; outlives every use of the strategy.
  [[nodiscard]] PeerHealth& health() const noexcept { return *health_; }

 protected:
  /// Where the processes meet for collectives: once for each thread that calls them.
  struct Endpoints {
    NodeGroup& window;
    std::optional<Membership> wire;  ///< between nodes, on those that talk there
  };

  WorkerProcesses(World world, const MultiWorkerOptions& options, const WorkerPolicy& policy);
  ~WorkerProcesses();

  /// False in a forked child, which leaves the network to its parent.
  [[nodiscard]] bool is_here() const noexcept { return process_.is_here(); }

  /// That of the thread that made the strategy.
  [[nodiscard]] Endpoints first_endpoints() const;
  /// The other processes of this node, found once more for one more place. A collective call.
  [[nodiscard]] std::vector<NodeGroup::Peer> find_peers_again();
  /// One more place, for another thread. `reached` says how many processes each one found on its node, with itself. A
  /// collective call.
  [[nodiscard]] Endpoints more_endpoints(std::vector<NodeGroup::Peer> peers, std::span<const std::size_t> reached);

  /// Whether several processes agree on the end of their data, and have not begun to.
  [[nodiscard]] bool has_to_agree() const noexcept { return all_ && !agreement_; }
  /// Made at the first call, which is a collective one.
  [[nodiscard]] Agreement agreement() const;

  /// Why an exception ends the work, where one does; else empty.
  [[nodiscard]] std::string why_failing() const;
  void abandon_agreement(std::string_view why) const noexcept;
  /// The end of the work: in order, unless it is failing or something in it is broken.
  void finish(bool broken);

 private:
  struct ReplicaCollectives;
  struct Settings;

  [[nodiscard]] static std::chrono::nanoseconds default_timeout();
  /// `peers` are the other processes of this node, `number` is that of the mailboxes there. A collective call.
  void join(ReplicaCollectives& joined, std::size_t number, std::vector<NodeGroup::Peer> peers, SpinBudget budget);

  [[nodiscard]] NetworkOptions options_of_network(Watchdog& watchdog);

  void require_equal_settings(const MultiWorkerOptions& options, std::string_view policy, bool separate);

  /// Binds this process to its part of the host's processors, where all processes there may use the same ones and there
  /// are enough. Returns whether every replica of the host has a processor of its own.
  [[nodiscard]] bool share_processors(const MultiWorkerOptions& options);

  OwnProcess process_;
  typename World::JobScope work_;
  World world_;
  std::chrono::nanoseconds timeout_;
  CollectiveChecks checks_;
  std::shared_ptr<PeerHealth> health_;  // the end of the process needs it later
  std::shared_ptr<NodeMemory> memory_;
  std::shared_ptr<Arena> arena_;
  std::unique_ptr<GroupLayout> layout_;
  std::size_t member_ = 0;  // of this node's group
  bool owns_cores_ = true;
  std::unique_ptr<ThreadBinding> binding_;                   // of the thread that made the strategy
  std::vector<std::unique_ptr<ReplicaCollectives>> joined_;  // first for the thread that made the strategy
  std::optional<Membership> all_;                            // uses the first one's watchdog
  mutable std::optional<Agreement> agreement_;
};

}  // namespace detail

/// The processes of a strategy, joined by the network `Net`, and the collectives between them, which reduce as `Ops` says.
/// Replicas of a process meet as threads; those of all processes of a node are one group, in the memory of which arrays
/// lie.
template <class Ops, detail::WorkersNetwork Net>
class Workers : public detail::WorkerProcesses<Net> {
  using Processes = detail::WorkerProcesses<Net>;
  using Policy = detail::BetweenNodes<Ops, typename Net::Membership>;
  static constexpr bool is_hierarchical = Policy::hierarchical;  // refuses what is no policy, before anything else
  using WireOps =
      typename detail::OpsBetweenNodes<Ops, typename Net::Membership>::template On<typename Net::Membership>;
  using NodeOps = NodeAllReduce::On<NodeCommunicator>;
  using ReplicaOps = NodeAllReduce::On<NodeReplicaCommunicator>;
  using OnHost = Hierarchical<ReplicaOps, WireOps>;

 public:
  /// The collectives between the processes.
  using WorkerCollectives = Hierarchical<NodeOps, WireOps>;
  /// Those of all replicas of all processes: the replicas of a node are one group. Memory of devices is the policy's own.
  template <class OfProcess>
  using ReplicaCollectives = typename detail::OfWorkers<Ops, OnHost>::Collectives;
  /// What a strategy keeps for that, beside its replicas, of which it is made.
  using CollectiveState = typename detail::OfWorkers<Ops, OnHost>::State;

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

  [[nodiscard]] const WorkerCollectives& between() const noexcept { return *between_.front(); }
  [[nodiscard]] std::size_t size() const noexcept { return this->layout().size(); }
  [[nodiscard]] std::size_t rank() const noexcept { return this->layout().rank(); }

  /// The options of the replicas, as these fit into the host that the processes share.
  [[nodiscard]] MirroredOptions adjusted(MirroredOptions options) const {
    options.pinned = options.pinned && this->owns_cores();
    options.on_host = this->on_host();
    options.communication.timeout = this->timeout();
    return options;
  }
  /// This process has so many replicas. Called once, before `join`.
  void admit(std::size_t replicas) {
    replicas_ = std::make_unique<NodeReplicas>(between().lower().communicator(), *Processes::memory(), replicas);
    for (std::size_t replica = 0; replica < replicas; ++replica)
      layouts_.push_back(this->layout().divided(replicas, replica));
  }
  /// The collectives of all replicas for one that has these among those of its process.
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
  /// The memory of variables: on the host what the other processes of the node reach, else on `devices`, from where the
  /// policy takes it.
  using Processes::memory;
  template <class Memory, class Devices, class Replicas>
  [[nodiscard]] std::shared_ptr<Memory> memory([[maybe_unused]] const Devices& devices, const Replicas&,
                                               [[maybe_unused]] const CollectiveState& joint) const {
    if constexpr (std::same_as<Memory, Arena>)
      return Processes::memory();
    else
      return detail::make_memory<Memory>(devices, joint);
  }
  /// Collectives that run in a thread of their own where that may communicate, else while a caller waits for them. A
  /// collective call.
  template <class Background>
  [[nodiscard]] std::shared_ptr<Background> make_background() {
    return std::make_shared<Background>(one_more_between(), this->any_thread_may_communicate()
                                                                ? BackgroundProgress::by_a_thread
                                                                : BackgroundProgress::while_waiting);
  }
  /// The same with mailboxes and messages of their own, which do not meet those of `between()`, so that another thread
  /// can use them at the same time: they stay as long as this object. A collective call.
  [[nodiscard]] WorkerCollectives one_more_between() {
    between().agree({.operation = "collectives in the background"});
    std::vector<NodeGroup::Peer> peers = this->find_peers_again();
    std::vector<std::size_t> reached(this->layout().size());
    between().all_gather_values("memory mapped again", peers.size() + 1, std::span{reached});
    return *between_.emplace_back(collectives_at(this->more_endpoints(std::move(peers), reached)));
  }
  /// The communicator of all processes; made at the first call, which is a collective one.
  [[nodiscard]] typename Processes::Agreement agreement() const {
    if (this->has_to_agree()) between().agree({.operation = "distribution of a dataset"});
    return Processes::agreement();
  }

 private:
  static constexpr bool has_thresholds = detail::ChoosesByThresholds<WireOps, typename Net::Membership>;

  /// What is no policy has been refused, and causes no further errors.
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
  std::vector<std::unique_ptr<WorkerCollectives>> between_;  // first for the thread that made the strategy
  std::unique_ptr<NodeReplicas> replicas_;
  std::vector<GroupLayout> layouts_;  // as each replica of this process sees it
};

}  // namespace dist

#ifndef DIST_COMPILED_MPI
#include <dist/strategy/workers.ipp>
#endif
