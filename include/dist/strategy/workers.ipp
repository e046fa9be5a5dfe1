#pragma once

#include <array>
#include <cstdint>

#include <dist/cluster/environment.hpp>
#include <dist/comm/health/peer_health.hpp>
#include <dist/comm/health/timeout.hpp>
#include <dist/comm/health/watchdog.hpp>
#include <dist/comm/messages/halving_doubling_all_reduce.hpp>
#include <dist/comm/node/find_nodes.hpp>
#include <dist/core/error.hpp>
#include <dist/core/hash.hpp>
#include <dist/device/affinity.hpp>
#include <dist/device/shared_memory.hpp>
#include <dist/device/topology.hpp>
#include <dist/device/wait.hpp>
#include <dist/strategy/workers.hpp>

namespace dist {

namespace detail {

/// Memory that a node's processes share, and its arena; variables keep it alive.
struct NodeMemory {
  /// `processes` is the most that map it: each maps the memory of all, twice for background collectives.
  NodeMemory(std::size_t replicas, std::size_t processes)
      : shared(bytes_for(2 * processes)),
        arena(replicas, std::span{shared.data(), shared.size()}.subspan(NodeGroup::header_bytes)) {}

  SharedMemory shared;
  Arena arena;

 private:
  [[nodiscard]] static std::size_t bytes_for(std::size_t mappings) {
    constexpr std::size_t header = NodeGroup::header_bytes;
    const std::size_t least = 2 * header;
    return std::max(least, std::min(header + Arena::largest_reservation(mappings), SharedMemory::largest()));
  }
};

/// The objects for the collectives of one thread.
template <WorkersNetwork Net>
struct WorkerProcesses<Net>::ReplicaCollectives {
  std::optional<Watchdog> watchdog;
  std::optional<Membership> wire;
  std::unique_ptr<NodeGroup> window;

  [[nodiscard]] Endpoints place() const { return {*window, wire}; }
};

template <WorkersNetwork Net>
WorkerProcesses<Net>::WorkerProcesses(World world, const MultiWorkerOptions& options, const WorkerPolicy& policy)
    : world_(std::move(world)),
      timeout_(options.communication.timeout ? *options.communication.timeout : default_timeout()),
      checks_(options.checks),
      health_(world_.known_peers()),
      memory_(std::make_shared<NodeMemory>(replicas_of(options), world_.size())),
      arena_(memory_, &memory_->arena) {
  static_cast<void>(longest_wait(timeout_));  // rejects a negative timeout before anything starts
  if (!policy.has_thresholds && (options.thresholds || options.measure_thresholds))
    throw InvalidArgument(concat(policy.name, " has only one algorithm, and does not use thresholds"),
                          "MultiWorkerOptions::thresholds, measure_thresholds",
                          "Use AutoAllReduce, or leave out these options");
  ReplicaCollectives& first = *joined_.emplace_back(std::make_unique<ReplicaCollectives>());
  FoundNodes nodes{GroupLayout::uniform(1, 1, 0, 0), {}};
  if (!world_.is_alone()) {
    first.watchdog.emplace(*health_, timeout_);
    NetworkOptions at_start = options_of_network(*first.watchdog);
    at_start.timeout = options.start_timeout;
    at_start.checks = CollectiveChecks::calls;  // until all are known to have the same settings
    const bool separate = !options.hierarchical.value_or(policy.hierarchical);
    all_ = world_.connect(at_start).with_timeout(timeout_);
    all_->watch_processes(*health_);
    require_equal_settings(options, policy.name, separate);
    all_ = all_->with_checks(checks_);
    nodes = find_nodes(*all_, memory_->shared, 0, separate);
  }
  layout_ = std::make_unique<GroupLayout>(std::move(nodes.layout));
  if (policy.one_node_only && layout_->groups() > 1)
    throw InvalidArgument(concat(policy.name, " does not support workers on several nodes"),
                          concat(layout_->size(), " workers on ", layout_->groups(), " nodes"),
                          "Use RingAllReduce, MpiAllReduce or AutoAllReduce");
  const std::span<const std::size_t> here = layout_->members(layout_->group());
  member_ = static_cast<std::size_t>(std::find(here.begin(), here.end(), layout_->rank()) - here.begin());
  owns_cores_ = !all_ || share_processors(options);
  join(first, 0, std::move(nodes.peers), owns_cores_ ? SpinBudget::own_core() : SpinBudget::shared_core());
}

template <WorkersNetwork Net>
WorkerProcesses<Net>::~WorkerProcesses() {
  if (is_here()) return;
  static auto& kept_in_child = *new std::vector<std::shared_ptr<void>>;
  for (std::unique_ptr<ReplicaCollectives>& each : joined_) kept_in_child.emplace_back(std::move(each));
  kept_in_child.push_back(std::make_shared<std::optional<Membership>>(std::move(all_)));
  kept_in_child.push_back(std::make_shared<std::optional<Agreement>>(std::move(agreement_)));
}

template <WorkersNetwork Net>
typename WorkerProcesses<Net>::Endpoints WorkerProcesses<Net>::first_endpoints() const {
  return joined_.front()->place();
}

template <WorkersNetwork Net>
std::vector<NodeGroup::Peer> WorkerProcesses<Net>::find_peers_again() {
  const std::size_t number = joined_.size();
  if (number == NodeGroup::most_groups)
    throw InvalidArgument("A strategy cannot make more groups for collectives in the background",
                          concat(number - 1, " were made, one after each failure"), "Restart all workers");
  if (!all_) return {};
  const bool separate = layout_->groups() == layout_->size();
  return find_nodes(*all_, memory_->shared, NodeGroup::mailboxes_at(number), separate).peers;
}

template <WorkersNetwork Net>
typename WorkerProcesses<Net>::Endpoints WorkerProcesses<Net>::more_endpoints(std::vector<NodeGroup::Peer> peers,
                                                                              std::span<const std::size_t> reached) {
  // All have the same data, so either all throw, or none does.
  for (std::size_t group = 0; group < layout_->groups(); ++group)
    for (const std::size_t rank : layout_->members(group))
      if (reached[rank] != layout_->members(group).size())
        throw OutOfMemory("The workers of a node could not map each other's memory a second time",
                          concat("worker ", rank, " reached ", reached[rank] - 1, " others"),
                          "Raise the limits on virtual memory and open files (ulimit -v, -n)");
  auto joined = std::make_unique<ReplicaCollectives>();
  if (all_) joined->watchdog.emplace(*health_, timeout_);
  // It waits while a replica computes, so it yields the processor at once.
  join(*joined, joined_.size(), std::move(peers), SpinBudget::shared_core());
  return joined_.emplace_back(std::move(joined))->place();
}

template <WorkersNetwork Net>
typename WorkerProcesses<Net>::Agreement WorkerProcesses<Net>::agreement() const {
  if (has_to_agree())
    agreement_.emplace(typename Net::Agreement{*all_, {.timeout = timeout_, .health = health_.get()}});
  return agreement_.value_or(Agreement{});
}

template <WorkersNetwork Net>
std::string WorkerProcesses<Net>::why_failing() const {
  if (!work_.failing()) return "";
  // An exception in flight cannot be read: std::current_exception() does not return it, and the C++ ABI only counts
  // them. Exceptions of the data were read where they were thrown.
  const std::string thrown = agreement_ ? agreement_->thrown_by_data() : "";
  return concat("an exception that left the scope of its strategy; ",
                thrown.empty() ? "see what that worker printed" : concat("its data threw: ", thrown));
}

template <WorkersNetwork Net>
void WorkerProcesses<Net>::abandon_agreement(std::string_view why) const noexcept {
  if (agreement_) agreement_->cancel(why);
}

template <WorkersNetwork Net>
void WorkerProcesses<Net>::finish(bool broken) {
  if (broken || work_.failing() || (all_ && all_->is_broken()) || health_->find_lost()) work_.fail();
  world_.end_strategy(health_, timeout_);
}

template <WorkersNetwork Net>
std::chrono::nanoseconds WorkerProcesses<Net>::default_timeout() {
  const std::optional<std::size_t> seconds = Environment{}.number("DIST_COLLECTIVE_TIMEOUT");
  constexpr std::size_t longest = 100 * 365 * 24 * 3600UL;  // to fit into nanoseconds
  return seconds ? std::chrono::seconds{std::min(*seconds, longest)} : std::chrono::minutes{10};
}

template <WorkersNetwork Net>
void WorkerProcesses<Net>::join(ReplicaCollectives& joined, std::size_t number, std::vector<NodeGroup::Peer> peers,
                                SpinBudget budget) {
  if (layout_->groups() > 1 && layout_->groups() < layout_->size())
    joined.wire =
        all_->split(member_ == 0 ? std::optional{std::size_t{0}} : std::nullopt, options_of_network(*joined.watchdog));
  else if (layout_->groups() > 1)
    joined.wire = number == 0 ? *all_ : all_->duplicate(options_of_network(*joined.watchdog));
  const std::string host{all_ ? all_->host(all_->rank()) : "here"};
  joined.window = std::make_unique<NodeGroup>(memory_->shared, memory_->arena, member_, layout_->rank(), host,
                                              std::move(peers), *health_, budget, timeout_, number);
}

template <WorkersNetwork Net>
NetworkOptions WorkerProcesses<Net>::options_of_network(Watchdog& watchdog) {
  NetworkOptions chosen;
  chosen.timeout = timeout_;
  chosen.checks = checks_;
  chosen.health = health_.get();
  chosen.watchdog = &watchdog;
  if (all_) chosen.worker = all_->rank();
  return chosen;
}

/// Settings that must be equal in all processes, which would otherwise wait in different calls. Timeouts may differ,
/// and so may the threads that call MPI.
template <WorkersNetwork Net>
struct WorkerProcesses<Net>::Settings {
  std::uint64_t replicas;
  std::uint64_t separate;
  std::uint64_t checks;
  std::uint64_t bytes_per_pack;
  std::uint64_t implementation;
  std::uint64_t thresholds[3];  // tree, halving and doubling; or how they are determined
  std::array<char, 64> policy;
};

template <WorkersNetwork Net>
void WorkerProcesses<Net>::require_equal_settings(const MultiWorkerOptions& options, std::string_view policy,
                                                  bool separate) {
  const AlgorithmThresholds given = options.thresholds.value_or(AlgorithmThresholds{});
  Settings mine{replicas_of(options),
                separate ? 1U : 0U,
                static_cast<std::uint64_t>(options.checks),
                options.communication.bytes_per_pack,
                static_cast<std::uint64_t>(options.communication.implementation),
                {given.tree_up_to, given.halving_doubling_up_to,
                 options.thresholds ? 2U : static_cast<std::uint64_t>(options.measure_thresholds)},
                {}};
  std::copy_n(policy.data(), std::min(policy.size(), mine.policy.size() - 1), mine.policy.data());
  std::vector<Settings> all_values(all_->size());
  HalvingDoublingAllReduce::On<Membership>{*all_}.all_gather_values("settings of the workers", mine,
                                                                    std::span{all_values});
  const auto compare = [&](std::string_view what, std::string_view fix, auto&& value_of) {
    for (std::size_t worker = 1; worker < all_values.size(); ++worker)
      if (value_of(all_values[worker]) != value_of(all_values[0]))
        throw InvalidArgument(concat("The workers do not have the same ", what),
                              concat("worker 0 has ", value_of(all_values[0]), ", worker ", worker, " has ",
                                     value_of(all_values[worker])),
                              fix);
  };
  compare("policy", "Give the MultiWorker of every worker the same policy",
          [](const Settings& settings) { return std::string_view{settings.policy.data()}; });
  compare("number of replicas", "Give every worker the same number of devices",
          [](const Settings& settings) { return settings.replicas; });
  constexpr std::string_view fix = "Give every worker the same MultiWorkerOptions; only timeouts may differ";
  compare("use of node memory (MultiWorkerOptions::hierarchical)", fix,
          [](const Settings& settings) { return std::string_view{settings.separate != 0 ? "false" : "true"}; });
  compare("checks of collectives (MultiWorkerOptions::checks)", fix, [](const Settings& settings) {
    constexpr auto none = static_cast<std::uint64_t>(CollectiveChecks::none);
    return std::string_view{settings.checks == none ? "none" : "calls"};
  });
  compare("size of a pack (CommunicationOptions::bytes_per_pack)", fix,
          [](const Settings& settings) { return settings.bytes_per_pack; });
  compare("implementation of collectives (CommunicationOptions::implementation)", fix,
          [](const Settings& settings) { return settings.implementation; });
  compare("thresholds of algorithms (MultiWorkerOptions::thresholds, measure_thresholds)", fix,
          [](const Settings& settings) {
            constexpr std::string_view left_out[] = {"thresholds for usual costs", "measured thresholds"};
            const auto& [tree, halving_doubling, found] = settings.thresholds;
            return found == 2 ? concat(tree, " and ", halving_doubling, " bytes") : std::string{left_out[found]};
          });
}

template <WorkersNetwork Net>
LocalProcesses WorkerProcesses<Net>::on_host() const {
  LocalProcesses here;
  for (std::size_t rank = 0; all_ && rank < all_->size(); ++rank) {
    if (rank == all_->rank() || all_->host(rank) != all_->host(all_->rank())) continue;
    ++here.count;
    if (rank < all_->rank()) ++here.number;
  }
  return here;
}

template <WorkersNetwork Net>
bool WorkerProcesses<Net>::share_processors(const MultiWorkerOptions& options) {
  const Membership& all = *all_;
  const std::vector<std::size_t> mine = allowed_processors();
  std::vector<std::uint64_t> checksums(all.size());
  HalvingDoublingAllReduce::On<Membership>{all}.all_gather_values(
      "processors", hash_of_numbers(std::span<const std::size_t>{mine}), std::span{checksums});
  const LocalProcesses here = on_host();
  bool bound_by_launcher = false;
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (all.host(rank) == all.host(all.rank()))
      bound_by_launcher = bound_by_launcher || checksums[rank] != checksums[all.rank()];
  if (bound_by_launcher) return mine.size() >= replicas_of(options);
  const std::size_t quota = processor_quota();  // lower than the number of processors if other jobs use them, too
  if (std::min(mine.size(), quota) < here.count * replicas_of(options)) return false;
  if (quota < mine.size() || !options.pinned.value_or(false) || here.count == 1) return true;
  std::vector<std::size_t> share;
  for (const std::size_t position : share_of(read_topology(mine), here)) share.push_back(mine[position]);
  binding_ = std::make_unique<ThreadBinding>(share);
  return true;
}

}  // namespace detail

}  // namespace dist
