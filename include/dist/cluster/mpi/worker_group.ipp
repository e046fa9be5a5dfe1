#pragma once

#include <array>
#include <cstdint>

#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/launcher.hpp>
#include <dist/cluster/lone_process.hpp>
#include <dist/cluster/mpi/worker_group.hpp>
#include <dist/cluster/torchrun_resolver.hpp>
#include <dist/cluster/validate.hpp>
#include <dist/comm/health/watchdog.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/log.hpp>
#include <dist/net/socket_address.hpp>

namespace dist {

namespace detail {

DIST_INLINE const std::shared_ptr<PeerHealth>& MpiRuntime::peers() {
  if (!health) health = std::make_shared<PeerHealth>();
  if (hosted && !lifeline_is_watched_) {
    lifeline_is_watched_ = true;
    health->watch_lifeline(hosted->lifeline(), [this] { return hosted->lost_peer(); });
    health->watch_helper("the server process of this host", hosted->server());
  }
  return health;
}

DIST_INLINE void MpiRuntime::abandon() noexcept {
  if (environment) environment->abandon();
  if (hosted) hosted->continue_server();
  hosted.reset();
}

class MpiRuntime::AtExit {
 public:
  explicit AtExit(MpiRuntime& world) : world_(world) {}
  AtExit(const AtExit&) = delete;
  AtExit& operator=(const AtExit&) = delete;
  ~AtExit() {
    world_.exits_ = true;
    if (world_.works_ != 0 && world_.hosted) world_.hosted->continue_server();
    world_.end_if_over();
  }

 private:
  MpiRuntime& world_;
};

DIST_INLINE MpiRuntime& MpiRuntime::of_process() {
  static MpiRuntime& world = *new MpiRuntime;
  static const AtExit at_exit{world};
  return world;
}

DIST_INLINE void MpiRuntime::end_if_over() noexcept {
  if (exits_ && works_ == 0 && process_ == getpid()) delete this;
}

DIST_INLINE MpiRuntime::~MpiRuntime() {
  if (unfinished_ != 0) abandon();
  if (hosted) hosted->goodbye();
  if (environment && environment->owns_mpi() && unfinished_ == 0) part();
}

DIST_INLINE void MpiRuntime::part() {
  mpi::finalize_together(environment, barrier_at_end ? &*barrier_at_end : nullptr, *peers(), timeout, [this] {
    if (hosted) hosted->continue_server();
  });
}

}  // namespace detail

DIST_INLINE WorkerGroup::WorkerGroup(mpi::CommRef comm) : comm_(comm.get()), task_(Task{}) {
  detail::has_joined_others.store(true, std::memory_order_relaxed);
  mpi::require_running();
  mpi::detail::require_group(comm);
  task_->index = mpi::detail::rank_in(comm_);
  source_ = "the program's communicator";
  static_cast<void>(started());
  ReportSignal::name_process(name_of(concat("worker ", task_->index)));
}

DIST_INLINE WorkerGroup::WorkerGroup(std::chrono::milliseconds start_timeout) {
  const Launcher launcher = find_launcher();
  if (!mpi::is_running() && !launcher.makes_world()) return;
  join(
      start_timeout, [](const void*) { return Found{}; }, nullptr);
}

DIST_INLINE WorkerGroup::Part::Part(const WorkerGroup& whole, const std::optional<mpi::Communicator>& all,
                                    std::size_t color, std::size_t key)
    : world_(whole) {
  if (!all) return;
  split_.emplace(*all, color, key);
  world_.comm_ = split_->comm().get();
  world_.is_part_ = true;
  world_.source_ = concat("a part of ", whole.source_);
}

DIST_INLINE std::shared_ptr<PeerHealth> WorkerGroup::known_peers() const {
  return started().hosted && !is_part_ ? started().peers() : std::make_shared<PeerHealth>();
}

DIST_INLINE void WorkerGroup::end_strategy(const std::shared_ptr<PeerHealth>& health,
                                           std::chrono::nanoseconds timeout) const {
  if (is_part_) return;
  started().health = health;
  if (!is_alone()) started().timeout = timeout;
}

DIST_INLINE bool WorkerGroup::trains(const std::optional<Task>& task) noexcept {
  return !task || task->type == TaskType::chief || task->type == TaskType::worker;
}

/// The data that processes exchange.
struct WorkerGroup::Claim {
  std::uint64_t cluster;
  std::uint64_t has_task;
  Task task;
  std::array<char, 512> error;
};

/// Starts MPI, which cannot be interrupted. Meanwhile, terminates this process if another one is lost or late.
class WorkerGroup::Start {
 public:
  Start(std::chrono::milliseconds longest, mpi::ThreadLevel wanted)
      : health_(started().hosted ? *started().peers() : alone_),
        watchdog_(health_, longest + (started().hosted ? first_word_of_the_server : std::chrono::milliseconds{0}),
                  std::chrono::seconds{1}, {}, mpi::connections_advice),
        guard_(&watchdog_, call_) {
    if (!mpi::is_running()) started().environment = std::make_unique<mpi::Environment>(wanted);
  }
  /// Names this process for the others' reports, and worker number `worker` if it is one. Throws Unavailable if a
  /// process was lost although MPI runs.
  void finish(std::string_view name, std::size_t worker) {
    detail::MpiRuntime& world = started();
    ReportSignal::name_process(name);
    if (world.environment && world.environment->owns_mpi() && !world.barrier_at_end)
      world.barrier_at_end.emplace(name, worker);
    health_.look();
  }

 private:
  /// The server has the same deadline, and can list the missing processes.
  static constexpr std::chrono::milliseconds first_word_of_the_server{3000};

  PeerHealth alone_;
  PeerHealth& health_;
  Watchdog watchdog_;
  CollectiveCall call_{.operation = "MPI_Init"};
  Watchdog::Guard guard_;
};

DIST_INLINE void WorkerGroup::join(std::chrono::milliseconds start_timeout, Found (*find)(const void* resolver),
                                   const void* resolver) {
  if (start_timeout.count() <= 0)
    throw InvalidArgument("The workers have no time to start",
                          concat("the start timeout is ", start_timeout.count(), " ms"),
                          "Set a positive timeout, such as 5 min");
  detail::has_joined_others.store(true, std::memory_order_relaxed);
  const detail::MpiRuntime::JobScope work{started()};
  constexpr std::chrono::hours longest{24 * 3650};  // larger values overflow as nanoseconds
  join(find(resolver), std::min<std::chrono::milliseconds>(start_timeout, longest));
}

DIST_INLINE void WorkerGroup::join(Found found, std::chrono::milliseconds start_timeout) {
  const Launcher launcher = find_launcher();
  if (found.cluster.empty() && launcher.kind == Launcher::Kind::torchrun && !mpi::is_running())
    if (const TorchrunResolver torchrun; !torchrun.cluster_spec().empty())
      found = {torchrun.cluster_spec(), torchrun.task(), torchrun.describe(), found.host};
  const ClusterSpec& cluster = found.cluster;
  const std::optional<Task>& task = found.task;
  source_ = found.source;
  if (mpi::is_running() || launcher.makes_world()) {
    join_launched(cluster, task, launcher, start_timeout);
  } else {
    validate_multi_worker(cluster, task, source_);
    for (const std::string& note : multi_worker_notes(cluster, source_)) detail::Warning{}.emit(note);
    if (const std::optional<std::string> note = launcher_note(); note && cluster.empty()) detail::Warning{}.emit(*note);
    if (cluster.empty()) require_world_size(launcher, 1);
    if (cluster.empty() && task && trains(task))
      detail::Warning{}.emit(
          concat(source_, " identifies this process as ", to_string(*task),
                 ", but lists no cluster: the process trains alone. List all tasks under 'cluster'."));
    task_ = task;
    if (cluster.empty()) source_ = "no other workers";
    if (!trains(task) || sync_tasks(cluster).size() <= 1) return;
    host(found, start_timeout);
  }
}

DIST_INLINE std::string WorkerGroup::name_of(std::string_view role) {
  return concat(role, " on host ", net::host_name());
}

[[gnu::cold]] DIST_INLINE void WorkerGroup::join_launched(const ClusterSpec& cluster, const std::optional<Task>& task,
                                                          const Launcher& launcher,
                                                          std::chrono::milliseconds start_timeout) {
  Start start{start_timeout, thread_level_};
  const std::size_t size = mpi::detail::size_of(MPI_COMM_WORLD);
  require_world_size(launcher, size);
  Claim mine{cluster.checksum(), task ? 1U : 0U, task.value_or(Task{}), {}};
  try {
    validate_multi_worker(cluster, task, source_);
  } catch (const Error& error) {
    std::strncpy(mine.error.data(), error.what(), mine.error.size() - 1);
  }
  std::vector<Claim> claims(size);
  DIST_MPI_CALL(MPI_Allgather(&mine, sizeof(Claim), MPI_BYTE, claims.data(), sizeof(Claim), MPI_BYTE, MPI_COMM_WORLD));
  require_agreement(cluster, claims);
  const bool works = trains(task);
  const std::size_t worker = cluster.empty() ? mpi::detail::rank_in(MPI_COMM_WORLD)
                             : works         ? id_in_cluster(cluster, *task)
                                             : mpi::ShutdownBarrier::no_worker;
  start.finish(name_of(works ? concat("worker ", worker) : to_string(*task)), worker);
  if (cluster.empty()) {
    comm_ = MPI_COMM_WORLD;
    task_ = Task{TaskType::worker, mpi::detail::rank_in(comm_)};
    source_ = "MPI_COMM_WORLD";
    return;
  }
  task_ = task;
  const int number = works ? static_cast<int>(worker) : 0;
  DIST_MPI_CALL(MPI_Comm_split(MPI_COMM_WORLD, works ? 0 : MPI_UNDEFINED, number, &comm_));
}

[[gnu::cold]] DIST_INLINE void WorkerGroup::require_agreement(const ClusterSpec& cluster,
                                                              const std::vector<Claim>& claims) const {
  for (std::size_t rank = 0; rank < claims.size(); ++rank)
    if (claims[rank].error[0] != '\0')
      throw InvalidArgument(concat("Rank ", rank, " of MPI_COMM_WORLD cannot join the cluster"),
                            claims[rank].error.data(), concat("Correct ", source_, " of that process"));
  for (std::size_t rank = 1; rank < claims.size(); ++rank)
    if (claims[rank].cluster != claims[0].cluster)
      throw InvalidArgument(concat("Ranks 0 and ", rank, " of MPI_COMM_WORLD do not have the same cluster"),
                            concat("their lists in ", source_, " differ, or one has none"),
                            concat("Give every process the same cluster in ", source_));
  if (cluster.empty()) return;
  for (std::size_t rank = 0; rank < claims.size(); ++rank)
    for (std::size_t other = 0; other < rank; ++other)
      if (claims[other].task == claims[rank].task)
        throw InvalidArgument(
            concat("Ranks ", other, " and ", rank, " of MPI_COMM_WORLD are both ", to_string(claims[rank].task)),
            concat("the task in their ", source_, " is the same"), "Give every process its own task index");
  for (const Task task : sync_tasks(cluster)) {
    bool found = false;
    for (const Claim& claim : claims) found = found || claim.task == task;
    if (!found)
      throw InvalidArgument(concat("No process of MPI_COMM_WORLD is ", to_string(task)),
                            concat(source_, " lists ", sync_tasks(cluster).size(),
                                   " tasks that train, MPI_COMM_WORLD has ", claims.size(), " processes"),
                            concat("Start one process for each task: mpirun -n ", cluster.tasks().size(), " PROGRAM"));
  }
}

[[gnu::cold]] DIST_INLINE void WorkerGroup::host(const Found& found, std::chrono::milliseconds start_timeout) {
  const std::size_t worker = id_in_cluster(found.cluster, *found.task);
  ReportSignal::name_process(name_of(concat("worker ", worker)));
  started().hosted = found.host(found.cluster, worker, source_, start_timeout);
  {
    Start start{start_timeout, thread_level_};
    started().hosted->initialised();
    start.finish(name_of(concat("worker ", worker)), worker);
  }
  comm_ = MPI_COMM_WORLD;
}

}  // namespace dist
