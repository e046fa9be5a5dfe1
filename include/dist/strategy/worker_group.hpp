#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/cluster/environment.hpp>
#include <dist/cluster/mpi/worker_world.hpp>
#include <dist/comm/auto_all_reduce.hpp>
#include <dist/comm/communication_options.hpp>
#include <dist/comm/cross_device_ops.hpp>
#include <dist/comm/failure_notice.hpp>
#include <dist/comm/hierarchical.hpp>
#include <dist/comm/longest_wait.hpp>
#include <dist/comm/mpi/communicator.hpp>
#include <dist/comm/mpi/mpi_all_reduce.hpp>
#include <dist/comm/mpi/node_window.hpp>
#include <dist/comm/peer_health.hpp>
#include <dist/comm/ring_all_reduce.hpp>
#include <dist/comm/shared_window_all_reduce.hpp>
#include <dist/comm/watchdog.hpp>
#include <dist/comm/window.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/checksum.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/pointers.hpp>
#include <dist/device/affinity.hpp>
#include <dist/device/arena.hpp>
#include <dist/device/processor_share.hpp>
#include <dist/device/shared_memory.hpp>
#include <dist/device/topology.hpp>
#include <dist/device/wait.hpp>
#include <dist/strategy/worker_agreement.hpp>

namespace dist {

/// How the processes of a MultiWorker work together.
struct MultiWorkerOptions {
  /// The replicas of each process, the same number in all (spec A10). Left out: the devices that the resolver gives a
  /// process, or 1.
  std::optional<std::size_t> replicas = std::nullopt;
  /// Whether the processes of a node share its processors out among them, where nobody bound them and there are enough.
  bool pinned = true;
  /// Whether the processes of a node meet in its memory and one of them goes to the other nodes. Left out: unless the
  /// policy talks to all processes itself, as MpiAllReduce does.
  std::optional<bool> hierarchical = std::nullopt;
  /// What is checked before a collective between nodes; within a node, where the check comes with the values, calls
  /// always are.
  CollectiveChecks checks = CollectiveChecks::calls;
  /// How collectives are done. The timeout: where none is chosen, DIST_COLLECTIVE_TIMEOUT seconds, else 10 minutes.
  CommunicationOptions communication = {};
  /// Which threads are to call MPI where this library starts it. With `multiple`, collectives in the background
  /// (nn::OverlappedAllReduce) go on between nodes while replicas compute.
  mpi::ThreadLevel thread_level = mpi::ThreadLevel::funneled;
  /// The longest that the processes wait for each other at the start.
  std::chrono::milliseconds start_timeout = std::chrono::minutes{5};
};

namespace detail {

[[nodiscard]] inline std::size_t replicas_of(const MultiWorkerOptions& options) noexcept {
  return options.replicas.value_or(1);
}

/// The policy between the nodes, or between all processes. Refuses, in a sentence, what does not work between them.
template <class Ops>
struct BetweenNodes {
  static constexpr bool is_named = !std::same_as<Ops, NoOps>;
  static_assert(is_named,
                "MultiWorker names how its processes reduce: dist::MultiWorker<dist::RingAllReduce>, or with "
                "MpiAllReduce, SharedWindowAllReduce or AutoAllReduce");
  static constexpr bool joins_processes = fits<Ops, mpi::Communicator>;
  static_assert(joins_processes,
                "this policy works between threads, and the workers of MultiWorker are processes: use RingAllReduce, "
                "MpiAllReduce, SharedWindowAllReduce or AutoAllReduce, or Mirrored with this policy");

  using Type = std::conditional_t<is_named && joins_processes, Ops, RingAllReduce>;
  static constexpr bool hierarchical = true;
  static constexpr bool one_node_only = false;
};
template <>
struct BetweenNodes<MpiAllReduce> {
  using Type = MpiAllReduce;
  static constexpr bool hierarchical = false;
  static constexpr bool one_node_only = false;
};
template <>
struct BetweenNodes<AutoAllReduce> : BetweenNodes<RingAllReduce> {};
template <>
struct BetweenNodes<SharedWindowAllReduce> : BetweenNodes<RingAllReduce> {
  static constexpr bool one_node_only = true;
};

/// Memory that the processes of a node share, and the arena in it: variables keep it as long as they need it.
struct WindowMemory {
  /// `processes` is the most that may map it: each maps that of all, and once more for collectives in the background.
  WindowMemory(std::size_t replicas, std::size_t processes)
      : shared(bytes_for(2 * processes)),
        arena(replicas, std::span{shared.data(), shared.size()}.subspan(WindowGroup::header_bytes)) {}

  SharedMemory shared;
  Arena arena;

 private:
  [[nodiscard]] static std::size_t bytes_for(std::size_t mappings) {
    constexpr std::size_t header = WindowGroup::header_bytes;
    const std::size_t least = 2 * header;
    return std::max(least, std::min(header + Arena::largest_reservation(mappings), SharedMemory::largest()));
  }
};

/// The processes of a MultiWorker: how they were started, where each one runs, and the collectives between them.
template <class Ops>
class WorkerGroup {
  using Between = BetweenNodes<Ops>;

 public:
  using NodeOps = SharedWindowAllReduce::On<WindowCommunicator>;
  using WireOps = typename Between::Type::template On<mpi::Communicator>;
  using Workers = Hierarchical<NodeOps, WireOps>;

  WorkerGroup(WorkerWorld world, const MultiWorkerOptions& options)
      : work_(WorkerWorld::started()),
        world_(std::move(world)),
        timeout_(options.communication.timeout ? *options.communication.timeout : default_timeout()),
        checks_(options.checks),
        memory_(std::make_shared<WindowMemory>(replicas_of(options), world_.size())) {
    static_cast<void>(longest_wait(timeout_));  // refuses a negative one before anything is started
    Joined& first = *joined_.emplace_back(std::make_unique<Joined>());
    mpi::FoundNodes nodes{GroupLayout::uniform(1, 1, 0, 0), {}};
    if (!world_.is_alone()) {
      first.watchdog.emplace(*health_, timeout_);
      mpi::CommunicatorOptions at_start = options_of_mpi(*first.watchdog);
      at_start.timeout = options.start_timeout;
      at_start.checks = CollectiveChecks::calls;  // until all are known to have chosen the same
      const bool separate = !options.hierarchical.value_or(Between::hierarchical);
      all_ = mpi::Communicator{world_.comm(), at_start}.with_timeout(timeout_);
      all_->watch_processes(*health_);
      require_equal_settings(options, separate);
      all_ = all_->with_checks(checks_);
      nodes = mpi::find_nodes(*all_, memory_->shared, 0, separate);
    }
    layout_ = std::make_unique<GroupLayout>(std::move(nodes.layout));
    if (Between::one_node_only && layout_->groups() > 1)
      throw InvalidArgument(text(Ops::name, " was asked for workers on several nodes"),
                            text(layout_->size(), " workers on ", layout_->groups(), " nodes"),
                            "Use RingAllReduce, MpiAllReduce or AutoAllReduce");
    const std::span<const std::size_t> here = layout_->members(layout_->group());
    member_ = static_cast<std::size_t>(std::find(here.begin(), here.end(), layout_->rank()) - here.begin());
    owns_cores_ = !all_ || share_processors(*all_, options);
    join(first, 0, std::move(nodes.peers), owns_cores_ ? SpinBudget::own_core() : SpinBudget::shared_core());
  }
  WorkerGroup(const WorkerGroup&) = delete;
  WorkerGroup& operator=(const WorkerGroup&) = delete;
  ~WorkerGroup() {
    if (work_.failing()) {
      // Nobody can read an exception that no handler has caught yet: std::current_exception() does not give it, and the
      // C++ ABI only counts those on their way. What the data threw was read where they threw it.
      const std::string thrown = agreement_ ? agreement_->thrown_by_data() : "";
      const std::string why = text("an exception that left the scope of its strategy; ",
                                   thrown.empty() ? "see what that worker printed" : text("its data threw: ", thrown));
      workers().begin_attempt();
      workers().abandon(FailureNotice{why}.for_good());
      if (agreement_) agreement_->abandon(why);
    }
    bool broken = work_.failing() || (all_ && all_->is_broken()) || health_->find_lost();
    for (const std::unique_ptr<Joined>& joined : joined_) broken = broken || joined->workers->is_broken();
    if (broken) work_.fail();
    WorkerWorld::started().health = health_;
    if (!world_.is_alone()) WorkerWorld::started().timeout = timeout_;
  }

  [[nodiscard]] const WorkerWorld& world() const noexcept { return world_; }
  [[nodiscard]] const GroupLayout& layout() const noexcept { return *layout_; }
  [[nodiscard]] const Workers& workers() const noexcept { return *joined_.front()->workers; }
  /// The same with mailboxes and messages of their own, which do not meet those of `workers()`, so that another thread
  /// can use them at the same time: they stay as long as this group. A collective call.
  [[nodiscard]] Workers more_workers() {
    workers().agree({.operation = "collectives in the background"});
    const std::size_t group = joined_.size();
    if (group == WindowGroup::most_groups)
      throw InvalidArgument("A strategy cannot make more groups for collectives in the background",
                            text(group - 1, " were made, one after each failure"), "Start all workers again");
    auto joined = std::make_unique<Joined>();
    std::vector<WindowGroup::Peer> peers;
    if (all_) {
      const bool separate = layout_->groups() == layout_->size();
      peers = mpi::find_nodes(*all_, memory_->shared, WindowGroup::mailboxes_at(group), separate).peers;
      // All see the same, so that all throw or none.
      std::vector<std::size_t> reached(layout_->size());
      workers().exchange("memory mapped again", peers.size() + 1, std::span{reached});
      for (std::size_t group_of = 0; group_of < layout_->groups(); ++group_of)
        for (const std::size_t rank : layout_->members(group_of))
          if (reached[rank] != layout_->members(group_of).size())
            throw OutOfMemory("The workers of a node could not map each other's memory a second time",
                              text("worker ", rank, " reached ", reached[rank] - 1, " others"),
                              "Raise the limits on virtual memory and open files (ulimit -v, -n)");
      joined->watchdog.emplace(*health_, timeout_);
    }
    // It waits where a replica computes, so it leaves the processor at once.
    join(*joined, group, std::move(peers), SpinBudget::shared_core());
    return *joined_.emplace_back(std::move(joined))->workers;
  }
  /// Whether any thread may use them: where MPI is called, if it was initialised with MPI_THREAD_MULTIPLE.
  [[nodiscard]] bool any_thread_may_communicate() const {
    return layout_->groups() == 1 || member_ != 0 || mpi::ThreadPermit{}.level() == mpi::ThreadLevel::multiple;
  }
  /// The communicator of all processes; made at the first call, which is a collective one.
  [[nodiscard]] WorkerAgreement agreement() const {
    if (all_ && !agreement_) {
      workers().agree({.operation = "distribution of a dataset"});
      agreement_.emplace(mpi::Agreement{*all_, mpi::AgreementOptions{.timeout = timeout_, .health = health_.get()}});
    }
    return agreement_.value_or(WorkerAgreement{});
  }
  [[nodiscard]] std::chrono::nanoseconds timeout() const noexcept { return timeout_; }
  [[nodiscard]] const std::shared_ptr<Arena>& memory() const noexcept { return arena_; }
  /// Whether every replica of this host has a processor of its own.
  [[nodiscard]] bool owns_cores() const noexcept { return owns_cores_; }

 private:
  /// In a hosted world there is one for all strategies of the process, because the lifeline reports each loss once.
  [[nodiscard]] static std::shared_ptr<PeerHealth> known_peers() {
    StartedWorld& started = WorkerWorld::started();
    return started.hosted ? started.peers() : std::make_shared<PeerHealth>();
  }
  [[nodiscard]] static std::chrono::nanoseconds default_timeout() {
    const std::optional<std::size_t> seconds = Environment{}.number("DIST_COLLECTIVE_TIMEOUT");
    constexpr std::size_t longest = 100 * 365 * 24 * 3600UL;  // so that nanoseconds can be counted
    return seconds ? std::chrono::seconds{std::min(*seconds, longest)} : std::chrono::minutes{10};
  }
  /// The processes, joined to make collectives: once for each thread that calls them.
  struct Joined {
    std::optional<Watchdog> watchdog;
    std::unique_ptr<WindowGroup> window;
    std::optional<Workers> workers;
  };

  /// `peers` are the other processes of this node, `group` is the number of the mailboxes there. A collective call.
  void join(Joined& joined, std::size_t group, std::vector<WindowGroup::Peer> peers, SpinBudget budget) {
    std::optional<WireOps> wire;
    if (layout_->groups() > 1 && layout_->groups() < layout_->size())
      wire = between_leaders(*joined.watchdog);
    else if (layout_->groups() > 1)
      wire.emplace(group == 0 ? *all_ : mpi::Communicator{mpi::ref(all_->native()), options_of_mpi(*joined.watchdog)});
    const std::string host{all_ ? all_->host(all_->rank()) : "here"};
    joined.window = std::make_unique<WindowGroup>(memory_->shared, memory_->arena, member_, layout_->rank(), host,
                                                  std::move(peers), *health_, budget, timeout_, group);
    joined.workers.emplace(*layout_, NodeOps{WindowCommunicator{*joined.window}}, std::move(wire), timeout_);
  }

  [[nodiscard]] mpi::CommunicatorOptions options_of_mpi(Watchdog& watchdog) {
    mpi::CommunicatorOptions chosen;
    chosen.timeout = timeout_;
    chosen.checks = checks_;
    chosen.health = health_.get();
    chosen.watchdog = &watchdog;
    if (all_) chosen.worker = all_->rank();
    return chosen;
  }

  /// What must be the same in all processes: otherwise they would wait for each other in different calls. Timeouts may
  /// differ, as may who calls MPI.
  struct Settings {
    std::uint64_t replicas;
    std::uint64_t separate;
    std::uint64_t checks;
    std::uint64_t bytes_per_pack;
    std::uint64_t implementation;
    std::array<char, 64> policy;
  };
  void require_equal_settings(const MultiWorkerOptions& options, bool separate) {
    Settings mine{replicas_of(options),
                  separate ? 1U : 0U,
                  static_cast<std::uint64_t>(options.checks),
                  options.communication.bytes_per_pack,
                  static_cast<std::uint64_t>(options.communication.implementation),
                  {}};
    std::copy_n(Ops::name.data(), std::min(Ops::name.size(), mine.policy.size() - 1), mine.policy.data());
    std::vector<Settings> of_all(all_->size());
    MpiAllReduce::On<mpi::Communicator>{*all_}.exchange("settings of the workers", mine, std::span{of_all});
    const auto compare = [&](std::string_view what, std::string_view fix, auto&& value_of) {
      for (std::size_t worker = 1; worker < of_all.size(); ++worker)
        if (value_of(of_all[worker]) != value_of(of_all[0]))
          throw InvalidArgument(
              text("The workers do not have the same ", what),
              text("worker 0 has ", value_of(of_all[0]), ", worker ", worker, " has ", value_of(of_all[worker])), fix);
    };
    compare("policy", "Give the MultiWorker of every worker the same one",
            [](const Settings& settings) { return std::string_view{settings.policy.data()}; });
    compare("number of replicas", "Give every worker the same number of devices",
            [](const Settings& settings) { return settings.replicas; });
    constexpr std::string_view fix = "Give every worker the same MultiWorkerOptions; only timeouts may differ";
    compare("way through the memory of a node (MultiWorkerOptions::hierarchical)", fix,
            [](const Settings& settings) { return std::string_view{settings.separate != 0 ? "false" : "true"}; });
    compare("checks of collectives (MultiWorkerOptions::checks)", fix, [](const Settings& settings) {
      constexpr auto none = static_cast<std::uint64_t>(CollectiveChecks::none);
      return std::string_view{settings.checks == none ? "none" : "calls"};
    });
    compare("size of a pack (CommunicationOptions::bytes_per_pack)", fix,
            [](const Settings& settings) { return settings.bytes_per_pack; });
    compare("implementation of collectives (CommunicationOptions::implementation)", fix,
            [](const Settings& settings) { return settings.implementation; });
  }

  /// The collectives of the first processes of all nodes, on these. A collective call of all.
  [[nodiscard]] std::optional<WireOps> between_leaders(Watchdog& watchdog) {
    MPI_Comm leaders = MPI_COMM_NULL;
    {
      const CollectiveCall call{.operation = "MPI_Comm_split"};
      const Watchdog::Guard guard{&watchdog, call};
      mpi::check(
          MPI_Comm_split(all_->native(), member_ == 0 ? 0 : MPI_UNDEFINED, static_cast<int>(all_->rank()), &leaders),
          "MPI_Comm_split");
    }
    if (leaders == MPI_COMM_NULL) return std::nullopt;
    std::optional<WireOps> wire{mpi::Communicator{mpi::ref(leaders), options_of_mpi(watchdog)}};
    mpi::check(MPI_Comm_free(&leaders), "MPI_Comm_free");  // the communicator is a duplicate
    return wire;
  }

  /// Binds this process to its part of the host's processors, where all processes there may use the same ones and there
  /// are enough. Returns whether every replica of the host has a processor of its own.
  [[nodiscard]] static bool share_processors(const mpi::Communicator& all, const MultiWorkerOptions& options) {
    const std::vector<std::size_t> mine = allowed_processors();
    std::vector<std::uint64_t> checksums(all.size());
    MpiAllReduce::On<mpi::Communicator>{all}.exchange("processors", checksum_of(mine), std::span{checksums});
    std::size_t members = 0;
    std::size_t member = 0;
    bool bound_by_launcher = false;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      if (all.host(rank) != all.host(all.rank())) continue;
      if (rank == all.rank()) member = members;
      bound_by_launcher = bound_by_launcher || checksums[rank] != checksums[all.rank()];
      ++members;
    }
    if (bound_by_launcher) return mine.size() >= replicas_of(options);
    if (mine.size() < members * replicas_of(options)) return false;
    if (!options.pinned || members == 1) return true;
    std::vector<std::size_t> share;
    for (const std::size_t position : share_of(read_topology(mine), {member, members})) share.push_back(mine[position]);
    bind_this_thread(share);
    return true;
  }

  StartedWorld::Work work_;
  WorkerWorld world_;
  std::chrono::nanoseconds timeout_;
  CollectiveChecks checks_;
  std::shared_ptr<PeerHealth> health_ = known_peers();  // MPI_Finalize needs it later
  std::shared_ptr<WindowMemory> memory_;
  std::shared_ptr<Arena> arena_{memory_, &memory_->arena};
  std::unique_ptr<GroupLayout> layout_;
  std::size_t member_ = 0;  // of this node's group
  bool owns_cores_ = true;
  std::vector<std::unique_ptr<Joined>> joined_;  // first for the thread that made the strategy
  std::optional<mpi::Communicator> all_;         // uses the first one's watchdog
  mutable std::optional<WorkerAgreement> agreement_;
};

}  // namespace detail

}  // namespace dist
