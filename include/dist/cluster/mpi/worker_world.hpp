#pragma once

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/cluster/cluster_resolver.hpp>
#include <dist/cluster/cluster_spec.hpp>
#include <dist/cluster/launcher.hpp>
#include <dist/cluster/lone_process.hpp>
#include <dist/cluster/rendezvous/machine.hpp>
#include <dist/cluster/roles.hpp>
#include <dist/cluster/task.hpp>
#include <dist/cluster/torchrun_resolver.hpp>
#include <dist/cluster/validate.hpp>
#include <dist/comm/mpi/api.hpp>
#include <dist/comm/mpi/communicator.hpp>
#include <dist/comm/mpi/environment.hpp>
#include <dist/comm/mpi/farewell.hpp>
#include <dist/comm/peer_health.hpp>
#include <dist/comm/slow_wait.hpp>
#include <dist/comm/watchdog.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/say.hpp>
#include <dist/core/warning.hpp>

namespace dist {

namespace detail {

/// A world that this library hosts (HostedWorld), as it is seen by what does not know how.
class Hosted {
 public:
  virtual ~Hosted() = default;
  [[nodiscard]] virtual int lifeline() const = 0;
  [[nodiscard]] virtual std::optional<LostPeer> lost_peer() const = 0;
  [[nodiscard]] virtual pid_t server() const = 0;
  virtual void initialised() = 0;
  virtual void continue_server() noexcept = 0;
  virtual void goodbye() = 0;
};

/// Joins the worlds that processes host themselves, for those that a resolver of type `R` knows:
/// `join(cluster, worker, source, start_timeout)`. It is defined in cluster/mpi/world_host.hpp, which needs PMIx and
/// OpenSSL; a program that owns MPI needs neither.
template <class R>
struct WorldHost;

/// The MPI that this library started, and the world that it hosts: once, for the whole life of the process. Nothing
/// where the program owns MPI.
struct StartedWorld {
  ReportSignal report_signal;  ///< from the first wait for other processes to the last one
  std::unique_ptr<Hosted> hosted;
  std::unique_ptr<mpi::Environment> environment;
  std::optional<mpi::Farewell> farewell;  ///< where this library finalises MPI
  std::shared_ptr<PeerHealth> health;     ///< what the last strategy knew of its peers
  /// The longest that this process waits at its end for the others: the timeout of the last strategy's collectives. 0
  /// waits as long as it takes, as a process that does not train has to: it may end long before the training.
  std::chrono::nanoseconds timeout{0};

  /// What this process knows about the others.
  [[nodiscard]] const std::shared_ptr<PeerHealth>& peers() {
    if (!health) health = std::make_shared<PeerHealth>();
    if (hosted && !lifeline_is_watched_) {
      lifeline_is_watched_ = true;
      health->watch_lifeline(hosted->lifeline(), [this] { return hosted->lost_peer(); });
      health->watch_helper("the server process of this host", hosted->server());
    }
    return health;
  }

  /// The job is broken: finalising MPI would wait for ever, and this process does not end in order.
  void abandon() noexcept {
    if (environment) environment->abandon();
    if (hosted) hosted->continue_server();
    hosted.reset();
  }
  /// The work of the processes together, as long as it lives. A process that ends during it, by exit, or after an
  /// exception left it, does not end in order.
  class Work {
   public:
    explicit Work(StartedWorld& world) : world_(world), exceptions_(std::uncaught_exceptions()) {
      ++world_.unfinished_;
    }
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;
    ~Work() {
      const bool started = world_.hosted || world_.environment;
      if (!failed_ && (!failing() || !started)) --world_.unfinished_;
    }
    /// Whether an exception is leaving the scope of the work.
    [[nodiscard]] bool failing() const noexcept { return std::uncaught_exceptions() > exceptions_; }
    /// Marks the work as failed: the process then does not end in order.
    void fail() noexcept { failed_ = true; }

   private:
    StartedWorld& world_;
    int exceptions_;
    bool failed_ = false;
  };

  StartedWorld() = default;
  StartedWorld(const StartedWorld&) = delete;
  StartedWorld& operator=(const StartedWorld&) = delete;
  ~StartedWorld() {
    if (unfinished_ != 0) abandon();
    if (hosted) hosted->goodbye();
    if (environment && environment->owns_mpi() && unfinished_ == 0) part();
  }

 private:
  /// Meets the others and finalises MPI, which waits for all of them. Where one does not come the process ends here, with
  /// the reason.
  void part() {
    std::fflush(nullptr);  // an end on the way flushes nothing
    const std::shared_ptr<PeerHealth> known = peers();
    try {
      if (farewell) farewell->meet(timeout, *known);
    } catch (const DeadlineExceeded& error) {
      end(Watchdog::exit_late, error);
    } catch (const std::exception& error) {
      end(Watchdog::exit_lost, error);
    }
    // All have come. A peer that was faster and has ended looks like a lost one: hence the patience.
    Watchdog watchdog{*known, timeout, std::chrono::seconds{30}, [this] {
                        if (hosted) hosted->continue_server();
                      }};
    const CollectiveCall call{.operation = "MPI_Finalize"};
    const Watchdog::Guard guard{&watchdog, call};
    environment.reset();
  }
  [[noreturn]] void end(int status, const std::exception& error) {
    say(text("stuck at the end of the process, and ended with status ", status, ": ", error.what()));
    if (hosted) hosted->continue_server();
    std::fflush(nullptr);
    _exit(status);
  }

  bool lifeline_is_watched_ = false;
  std::size_t unfinished_ = 0;
};

}  // namespace detail

/// The processes that train together, however they were started, as a communicator of MPI whose ranks are the worker
/// numbers: chief first (spec A07 to A11).
///
/// - A communicator of the host program: its ranks.
/// - MPI runs already, or a launcher (mpirun, srun) started the process: MPI_COMM_WORLD. Where there is a cluster, it is
///   checked against that world, ranks are put into the order of the tasks, and evaluators are left out.
/// - A cluster alone: a world that the processes host themselves (HostedWorld). The variables of torchrun are a cluster
///   where the resolver knows of none.
/// - Nothing of these, or an evaluator: this process alone, without MPI.
class WorkerWorld {
 public:
  /// This process alone.
  WorkerWorld() = default;
  /// The communicator of a host program, which owns MPI.
  explicit WorkerWorld(mpi::CommRef comm) : comm_(comm.get()), task_(Task{}) {
    detail::has_joined_others.store(true, std::memory_order_relaxed);
    mpi::require_running();
    task_->index = rank_in(comm_);
    source_ = "the program's communicator";
    static_cast<void>(started());
    ReportSignal::name_process(name_of(text("worker ", task_->index)));
  }
  /// All that reads `resolver` is done here. Throws InvalidArgument for a cluster that cannot work, or that differs
  /// between the processes; DeadlineExceeded when not all come within `start_timeout`, which under a launcher, whose
  /// world cannot be interrupted while it starts, ends the process (Watchdog). `thread_level` is asked of MPI where
  /// this starts it.
  template <ClusterResolver R>
  WorkerWorld(const R& resolver, std::chrono::milliseconds start_timeout,
              mpi::ThreadLevel thread_level = mpi::ThreadLevel::funneled)
      : thread_level_(thread_level) {
    constexpr bool can_host = requires { sizeof(detail::WorldHost<R>); };
    static_assert(
        can_host,
        "processes that a resolver lists may have to host their world of MPI themselves: include "
        "<dist/multi_worker.hpp>, which needs PMIx, jansson and OpenSSL, or give MultiWorker the communicator "
        "of a program that owns MPI, dist::mpi::ref(comm)");
    if (start_timeout.count() <= 0)
      throw InvalidArgument("The workers have no time to start",
                            text("the start timeout is ", start_timeout.count(), " ms"),
                            "Give a positive one, such as 5 min");
    detail::has_joined_others.store(true, std::memory_order_relaxed);
    const detail::StartedWorld::Work work{started()};
    constexpr std::chrono::hours longest{24 * 3650};  // what is longer overflows as nanoseconds
    if constexpr (can_host) join(resolver, std::min<std::chrono::milliseconds>(start_timeout, longest));
  }

  /// Whether there is no communicator: this process trains alone.
  [[nodiscard]] bool is_alone() const noexcept { return comm_ == MPI_COMM_NULL; }
  [[nodiscard]] mpi::CommRef comm() const noexcept { return mpi::CommRef{comm_}; }
  /// The number of processes.
  [[nodiscard]] std::size_t size() const { return is_alone() ? 1 : size_of(comm_); }
  /// What this process is in its cluster; none where there is no cluster.
  [[nodiscard]] const std::optional<Task>& task() const noexcept { return task_; }
  /// Where the workers come from, for messages: "TF_CONFIG", "MPI_COMM_WORLD".
  [[nodiscard]] const std::string& source() const noexcept { return source_; }
  /// What this library started in this process.
  [[nodiscard]] static detail::StartedWorld& started() {
    static detail::StartedWorld kept;
    return kept;
  }

 private:
  struct Claim {
    std::uint64_t cluster;
    std::uint64_t has_task;
    Task task;
    std::array<char, 512> error;
  };

  [[nodiscard]] static bool trains(const std::optional<Task>& task) noexcept {
    return !task || task->type == TaskType::chief || task->type == TaskType::worker;
  }
  static void say(std::string_view note) { dist::detail::Warning{}.give(note); }
  [[nodiscard]] static std::size_t size_of(MPI_Comm comm) {
    int size = 0;
    mpi::check(MPI_Comm_size(comm, &size), "MPI_Comm_size");
    return static_cast<std::size_t>(size);
  }
  [[nodiscard]] static std::size_t rank_in(MPI_Comm comm) {
    int rank = 0;
    mpi::check(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
    return static_cast<std::size_t>(rank);
  }
  /// Starts MPI, which waits for all processes and cannot be interrupted: while it lives, a process that is lost, or
  /// does not come in time, ends this one.
  class Start {
   public:
    Start(std::chrono::milliseconds longest, mpi::ThreadLevel wanted)
        : health_(started().hosted ? *started().peers() : alone_),
          watchdog_(health_, longest + (started().hosted ? first_word_of_the_server : std::chrono::milliseconds{0})),
          guard_(&watchdog_, call_) {
      if (!mpi::is_running()) started().environment = std::make_unique<mpi::Environment>(wanted);
    }
    /// The process is `name` to the others, and worker number `worker` where it is one. Throws Unavailable where a
    /// process went, although MPI runs.
    void finish(std::string_view name, std::size_t worker) {
      detail::StartedWorld& world = started();
      ReportSignal::name_process(name);
      if (world.environment && world.environment->owns_mpi() && !world.farewell) world.farewell.emplace(name, worker);
      health_.look();
    }

   private:
    /// The server keeps the same deadline, and can name the missing processes.
    static constexpr std::chrono::milliseconds first_word_of_the_server{3000};

    PeerHealth alone_;
    PeerHealth& health_;
    Watchdog watchdog_;
    CollectiveCall call_{.operation = "MPI_Init"};
    Watchdog::Guard guard_;
  };

  template <class R>
  void join(const R& resolver, std::chrono::milliseconds start_timeout) {
    const ClusterSpec cluster = resolver.cluster_spec();
    const std::optional<Task> task = resolver.task();
    const Launcher launcher = find_launcher();
    if (cluster.empty() && launcher.kind == Launcher::Kind::torchrun && !mpi::is_running()) {
      const TorchrunResolver torchrun;
      if (!torchrun.cluster_spec().empty()) return join(torchrun, start_timeout);
    }
    const bool launched = launcher.kind != Launcher::Kind::none && launcher.kind != Launcher::Kind::torchrun;
    source_ = resolver.describe();
    if (mpi::is_running() || launched) {
      join_launched(cluster, task, launcher, start_timeout);
    } else {
      validate_multi_worker(cluster, task, source_);
      for (const std::string& note : multi_worker_notes(cluster, source_)) say(note);
      if (const std::optional<std::string> note = launcher_note(); note && cluster.empty()) say(*note);
      if (launcher.kind == Launcher::Kind::torchrun && cluster.empty()) require_world_size(launcher, 1);
      task_ = task;
      if (cluster.empty()) source_ = "no other workers";
      if (!trains(task) || sync_tasks(cluster).size() <= 1) return;
      host<R>(cluster, *task, start_timeout);
    }
  }

  [[nodiscard]] static std::string name_of(std::string_view role) {
    return text(role, " on host ", rendezvous::host_name());
  }

  void join_launched(const ClusterSpec& cluster, const std::optional<Task>& task, const Launcher& launcher,
                     std::chrono::milliseconds start_timeout) {
    Start start{start_timeout, thread_level_};
    const std::size_t size = size_of(MPI_COMM_WORLD);
    require_world_size(launcher, size);
    Claim mine{cluster.checksum(), task ? 1U : 0U, task.value_or(Task{}), {}};
    try {
      validate_multi_worker(cluster, task, source_);
    } catch (const Error& error) {
      std::strncpy(mine.error.data(), error.what(), mine.error.size() - 1);
    }
    std::vector<Claim> claims(size);
    mpi::check(MPI_Allgather(&mine, sizeof(Claim), MPI_BYTE, claims.data(), sizeof(Claim), MPI_BYTE, MPI_COMM_WORLD),
               "MPI_Allgather");
    require_agreement(cluster, claims);
    const bool works = trains(task);
    const std::size_t worker = cluster.empty() ? rank_in(MPI_COMM_WORLD)
                               : works         ? id_in_cluster(cluster, *task)
                                               : mpi::Farewell::no_worker;
    start.finish(name_of(works ? text("worker ", worker) : to_string(*task)), worker);
    if (cluster.empty()) {
      comm_ = MPI_COMM_WORLD;
      task_ = Task{TaskType::worker, rank_in(comm_)};
      source_ = "MPI_COMM_WORLD";
      return;
    }
    task_ = task;
    const int number = works ? static_cast<int>(worker) : 0;
    mpi::check(MPI_Comm_split(MPI_COMM_WORLD, works ? 0 : MPI_UNDEFINED, number, &comm_), "MPI_Comm_split");
  }

  /// Every process sees the claims of all, so all throw or none.
  void require_agreement(const ClusterSpec& cluster, const std::vector<Claim>& claims) const {
    for (std::size_t rank = 0; rank < claims.size(); ++rank)
      if (claims[rank].error[0] != '\0')
        throw InvalidArgument(text("Rank ", rank, " of MPI_COMM_WORLD cannot join the cluster"),
                              claims[rank].error.data(), text("Correct ", source_, " of that process"));
    for (std::size_t rank = 1; rank < claims.size(); ++rank)
      if (claims[rank].cluster != claims[0].cluster)
        throw InvalidArgument(text("Ranks 0 and ", rank, " of MPI_COMM_WORLD do not have the same cluster"),
                              text("their lists in ", source_, " differ, or one has none"),
                              text("Give every process the same cluster in ", source_));
    if (cluster.empty()) return;
    for (std::size_t rank = 0; rank < claims.size(); ++rank)
      for (std::size_t other = 0; other < rank; ++other)
        if (claims[other].task == claims[rank].task)
          throw InvalidArgument(
              text("Ranks ", other, " and ", rank, " of MPI_COMM_WORLD are both ", to_string(claims[rank].task)),
              text("the task of their ", source_, " is the same"), "Give every process its own task index");
    for (const Task task : sync_tasks(cluster)) {
      bool found = false;
      for (const Claim& claim : claims) found = found || claim.task == task;
      if (!found)
        throw InvalidArgument(text("No process of MPI_COMM_WORLD is ", to_string(task)),
                              text(source_, " lists ", sync_tasks(cluster).size(), " that train, MPI_COMM_WORLD has ",
                                   claims.size(), " processes"),
                              text("Start one process for each task: mpirun -n ", cluster.tasks().size(), " PROGRAM"));
    }
  }

  template <class R>
  void host(const ClusterSpec& cluster, Task task, std::chrono::milliseconds start_timeout) {
    const std::size_t worker = id_in_cluster(cluster, task);
    ReportSignal::name_process(name_of(text("worker ", worker)));
    started().hosted = detail::WorldHost<R>::join(cluster, worker, source_, start_timeout);
    {
      Start start{start_timeout, thread_level_};
      started().hosted->initialised();
      start.finish(name_of(text("worker ", worker)), worker);
    }
    comm_ = MPI_COMM_WORLD;
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  std::optional<Task> task_;
  std::string source_ = "nothing";
  mpi::ThreadLevel thread_level_ = mpi::ThreadLevel::funneled;
};

}  // namespace dist
