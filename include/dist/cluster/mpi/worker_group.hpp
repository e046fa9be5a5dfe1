#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dist/cluster/cluster_resolver.hpp>
#include <dist/cluster/cluster_spec.hpp>
#include <dist/comm/health/peer_health.hpp>
#include <dist/comm/mpi/api.hpp>
#include <dist/comm/mpi/communicator.hpp>
#include <dist/comm/mpi/environment.hpp>
#include <dist/comm/mpi/shutdown_barrier.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/device/slow_wait.hpp>

namespace dist {

struct Launcher;

namespace detail {

/// The interface of a hosted world (HostedWorld) for code without PMIx and OpenSSL.
class WorldHandle {
 public:
  virtual ~WorldHandle() = default;
  /// The connection to this node's server, to poll for input before `lost_peer`.
  [[nodiscard]] virtual int lifeline() const noexcept = 0;
  /// Returns a loss that the lifeline has reported. Does not wait.
  [[nodiscard]] virtual std::optional<LostPeer> lost_peer() const = 0;
  /// The process ID of this node's server.
  [[nodiscard]] virtual pid_t server() const = 0;
  /// Call after MPI_Init.
  virtual void initialised() = 0;
  /// Resumes a server that a signal has stopped, so that it detects this process's exit, and exits.
  virtual void continue_server() noexcept = 0;
  /// Reports an orderly exit, before or after MPI_Finalize.
  virtual void goodbye() = 0;
};

/// Joins a self-hosted world, for clusters of a resolver of type `R`: `join(cluster, worker, source, start_timeout)`.
/// Defined in cluster/mpi/world_host.hpp, which needs PMIx and OpenSSL; a program that owns MPI does not need it.
template <class R>
struct WorldHost;

/// The MPI that this library started, and the world that it hosts, for the lifetime of the process.
struct MpiRuntime {
  ReportSignal report_signal;  ///< from the first to the last wait for other processes
  std::unique_ptr<WorldHandle> hosted;
  std::unique_ptr<mpi::Environment> environment;
  std::optional<mpi::ShutdownBarrier> barrier_at_end;  ///< if this library finalises MPI
  std::shared_ptr<PeerHealth> health;                  ///< the last strategy's state of its peers
  /// The wait for others at exit: the timeout of the last strategy's collectives. 0 waits without limit, for processes
  /// that do not train and may exit long before the training ends.
  std::chrono::nanoseconds timeout{0};

  /// The state of the other processes.
  [[nodiscard]] const std::shared_ptr<PeerHealth>& peers();

  /// Marks the job as failed: finalising MPI would wait forever.
  void abandon() noexcept;
  /// The scope of the processes' joint work. A process that exits within it, or leaves it by an exception, does not
  /// exit orderly.
  class JobScope {
   public:
    explicit JobScope(MpiRuntime& world) : world_(world), exceptions_(std::uncaught_exceptions()) {
      ++world_.unfinished_;
      ++world_.works_;
    }
    JobScope(const JobScope&) = delete;
    JobScope& operator=(const JobScope&) = delete;
    ~JobScope() {
      const bool started = world_.hosted || world_.environment;
      if (!failed_ && (!failing() || !started)) --world_.unfinished_;
      --world_.works_;
      world_.end_if_over();
    }
    [[nodiscard]] bool failing() const noexcept { return std::uncaught_exceptions() > exceptions_; }
    /// Marks the work as failed: the process does not exit orderly.
    void fail() noexcept { failed_ = true; }

   private:
    MpiRuntime& world_;
    int exceptions_;
    bool failed_ = false;
  };

  /// The world of this process, created at the first call. It ends at exit, or with the last strategy of a static
  /// object that was created earlier.
  [[nodiscard]] static MpiRuntime& of_process();

  MpiRuntime(const MpiRuntime&) = delete;
  MpiRuntime& operator=(const MpiRuntime&) = delete;

 private:
  class AtExit;

  MpiRuntime() = default;
  ~MpiRuntime();

  /// Ends the world at exit if no work remains. A forked child leaves it to its parent.
  void end_if_over() noexcept;
  /// Waits for the others and finalises MPI. If one does not arrive, terminates the process with the reason.
  void part();

  bool lifeline_is_watched_ = false;
  std::size_t unfinished_ = 0;  // unfinished and failed scopes
  std::size_t works_ = 0;       // unfinished scopes
  bool exits_ = false;
  pid_t process_ = getpid();
};

}  // namespace detail

/// The processes that train together as an MPI communicator whose ranks are the worker numbers, chief first (spec A07
/// to A11).
///
/// - A communicator of the host program: its ranks.
/// - MPI runs already, or a launcher (mpirun, srun) started the process: MPI_COMM_WORLD. A given cluster is checked
///   against it, ranks follow the order of the tasks, and evaluators are left out.
/// - A cluster only: a self-hosted world (HostedWorld). The variables of torchrun are the default cluster.
/// - None of these, or an evaluator: this process alone, without MPI.
class WorkerGroup {
 public:
  /// This process alone.
  WorkerGroup() = default;
  /// The communicator of a host program, which owns MPI.
  explicit WorkerGroup(mpi::CommRef comm);
  /// MPI_COMM_WORLD, if MPI runs or a launcher started this process; otherwise this process alone. Reports errors like
  /// the constructor with a resolver.
  explicit WorkerGroup(std::chrono::milliseconds start_timeout);
  /// The processes of `whole`, with the membership `all`, that pass the same colour, ranked by key. A collective call
  /// of `all`. Objects on the part's world must not outlive the Part.
  class Part;
  /// Throws InvalidArgument if the cluster is invalid or differs between processes, and DeadlineExceeded if not all
  /// join within `start_timeout`. Under a launcher, whose start cannot be interrupted, terminates the process instead
  /// (Watchdog). If this starts MPI, it requests `thread_level`. Does not use `resolver` later.
  template <ClusterResolver R>
  WorkerGroup(const R& resolver, std::chrono::milliseconds start_timeout,
              mpi::ThreadLevel thread_level = mpi::ThreadLevel::funneled)
      : thread_level_(thread_level) {
    constexpr bool can_host = requires { sizeof(detail::WorldHost<R>); };
    static_assert(
        can_host,
        "the processes of a resolver may have to host their own MPI world: include <dist/multi_worker.hpp>, which "
        "needs PMIx, jansson and OpenSSL, or pass MultiWorker the communicator of a program that owns MPI, "
        "dist::mpi::ref(comm)");
    if constexpr (can_host)
      join(
          start_timeout,
          [](const void* of) {
            const R& asked = *static_cast<const R*>(of);
            return Found{asked.cluster_spec(), asked.task(), asked.describe(), detail::WorldHost<R>::join};
          },
          &resolver);
  }

  /// True if this process trains alone, without a communicator.
  [[nodiscard]] bool is_alone() const noexcept { return comm_ == MPI_COMM_NULL; }
  /// The communicator of the workers; MPI_COMM_NULL if `is_alone()`.
  [[nodiscard]] mpi::CommRef comm() const noexcept { return mpi::CommRef{comm_}; }
  /// The number of processes.
  [[nodiscard]] std::size_t size() const { return is_alone() ? 1 : mpi::detail::size_of(comm_); }
  /// The task of this process; empty without a cluster.
  [[nodiscard]] const std::optional<Task>& task() const noexcept { return task_; }
  /// The origin of the workers, for messages: "TF_CONFIG", "MPI_COMM_WORLD".
  [[nodiscard]] const std::string& source() const noexcept { return source_; }
  /// Creates a membership if there are several processes. A collective call.
  [[nodiscard]] mpi::Communicator connect(const NetworkOptions& options) const {
    return mpi::Communicator{comm(), options};
  }

  /// The scope of the processes' joint work.
  class JobScope : public detail::MpiRuntime::JobScope {
   public:
    JobScope() : detail::MpiRuntime::JobScope(started()) {}
  };
  /// The state of the other processes, shared by all strategies of a hosted world, because the lifeline reports each
  /// loss once. A part numbers its workers anew, and starts without losses.
  [[nodiscard]] std::shared_ptr<PeerHealth> known_peers() const;
  /// Ends a strategy. At exit, the process uses the others' state, `health`, and waits up to `timeout`.
  void end_strategy(const std::shared_ptr<PeerHealth>& health, std::chrono::nanoseconds timeout) const;

  /// The MPI that this library started, for the lifetime of the process.
  [[nodiscard]] static detail::MpiRuntime& started() { return detail::MpiRuntime::of_process(); }

 private:
  /// The results of a resolver, and the function that joins a self-hosted world.
  struct Found {
    ClusterSpec cluster;
    std::optional<Task> task;
    std::string source;
    std::unique_ptr<detail::WorldHandle> (*host)(const ClusterSpec& cluster, std::size_t worker,
                                                 std::string_view source, std::chrono::milliseconds start_timeout);
  };
  struct Claim;
  class Start;

  [[nodiscard]] static bool trains(const std::optional<Task>& task) noexcept;

  void join(std::chrono::milliseconds start_timeout, Found (*find)(const void* resolver), const void* resolver);
  void join(Found found, std::chrono::milliseconds start_timeout);

  [[nodiscard]] static std::string name_of(std::string_view role);

  void join_launched(const ClusterSpec& cluster, const std::optional<Task>& task, const Launcher& launcher,
                     std::chrono::milliseconds start_timeout);

  /// All processes have all claims, so either all throw, or none does.
  void require_agreement(const ClusterSpec& cluster, const std::vector<Claim>& claims) const;

  void host(const Found& found, std::chrono::milliseconds start_timeout);

  MPI_Comm comm_ = MPI_COMM_NULL;
  bool is_part_ = false;  // of another world
  std::optional<Task> task_;
  std::string source_ = "nothing";
  mpi::ThreadLevel thread_level_ = mpi::ThreadLevel::funneled;
};

/// A part of a world; see WorkerGroup.
class WorkerGroup::Part {
 public:
  /// A collective call of all members of `all`: creates the part of the members with the same colour, ranked by key.
  /// `all` is empty if `whole` is alone.
  Part(const WorkerGroup& whole, const std::optional<mpi::Communicator>& all, std::size_t color, std::size_t key);

  /// The processes of the part.
  [[nodiscard]] const WorkerGroup& world() const noexcept { return world_; }

 private:
  std::optional<mpi::SplitComm> split_;  // empty if this process is alone
  WorkerGroup world_;
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/cluster/mpi/worker_group.ipp>
#endif
