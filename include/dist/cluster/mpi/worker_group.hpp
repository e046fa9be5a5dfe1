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
#include <dist/cluster/task.hpp>
#include <dist/comm/health/peer_health.hpp>
#include <dist/comm/mpi/api.hpp>
#include <dist/comm/mpi/communicator.hpp>
#include <dist/comm/mpi/environment.hpp>
#include <dist/comm/mpi/shutdown_barrier.hpp>
#include <dist/comm/mpi/split_comm.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/device/slow_wait.hpp>

namespace dist {

struct Launcher;

namespace detail {

/// A world that this library hosts (HostedWorld), for code that needs neither PMIx nor OpenSSL.
class WorldHandle {
 public:
  virtual ~WorldHandle() = default;
  /// The connection to this node's server, to be watched for input: see `lost_peer`.
  [[nodiscard]] virtual int lifeline() const noexcept = 0;
  /// A process that is gone, if the lifeline tells of one now. Does not wait.
  [[nodiscard]] virtual std::optional<LostPeer> lost_peer() const = 0;
  /// The process of this node's server.
  [[nodiscard]] virtual pid_t server() const = 0;
  /// MPI_Init is over.
  virtual void initialised() = 0;
  /// Lets the server go on if a signal has stopped it, so that it sees that this process ends, and does not stay behind.
  virtual void continue_server() noexcept = 0;
  /// This rank ends in an orderly way, before or after MPI_Finalize.
  virtual void goodbye() = 0;
};

/// Joins the worlds that processes host themselves, for those that a resolver of type `R` knows:
/// `join(cluster, worker, source, start_timeout)`. It is defined in cluster/mpi/world_host.hpp, which needs PMIx and
/// OpenSSL; a program that owns MPI needs neither.
template <class R>
struct WorldHost;

/// The MPI that this library started, and the world that it hosts: once, for the whole life of the process. Nothing
/// where the program owns MPI.
struct MpiRuntime {
  ReportSignal report_signal;  ///< from the first wait for other processes to the last one
  std::unique_ptr<WorldHandle> hosted;
  std::unique_ptr<mpi::Environment> environment;
  std::optional<mpi::ShutdownBarrier> barrier_at_end;  ///< where this library finalises MPI
  std::shared_ptr<PeerHealth> health;                  ///< what the last strategy knew of its peers
  /// The longest that this process waits at its end for the others: the timeout of the last strategy's collectives. 0
  /// waits as long as it takes, as a process that does not train has to: it may end long before the training.
  std::chrono::nanoseconds timeout{0};

  /// What this process knows about the others.
  [[nodiscard]] const std::shared_ptr<PeerHealth>& peers();

  /// The job is broken: finalising MPI would wait for ever, and this process does not end in order.
  void abandon() noexcept;
  /// The work of the processes together, as long as it lives. A process that ends during it, by exit, or after an
  /// exception left it, does not end in order.
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
    /// Whether an exception is leaving the scope of the work.
    [[nodiscard]] bool failing() const noexcept { return std::uncaught_exceptions() > exceptions_; }
    /// Marks the work as failed: the process then does not end in order.
    void fail() noexcept { failed_ = true; }

   private:
    MpiRuntime& world_;
    int exceptions_;
    bool failed_ = false;
  };

  /// The world of this process, made at the first call. It ends at the exit of the process; where static objects made
  /// before it own strategies, with the last of these.
  [[nodiscard]] static MpiRuntime& of_process();

  MpiRuntime(const MpiRuntime&) = delete;
  MpiRuntime& operator=(const MpiRuntime&) = delete;

 private:
  class AtExit;

  MpiRuntime() = default;
  ~MpiRuntime();

  /// Ends if the process exits and no work goes on. A forked child leaves the world to its parent.
  void end_if_over() noexcept;
  /// Meets the others and finalises MPI, which waits for all of them. Where one does not come the process ends here, with
  /// the reason.
  void part();

  bool lifeline_is_watched_ = false;
  std::size_t unfinished_ = 0;  // works, and failed works
  std::size_t works_ = 0;       // works that have begun and not ended
  bool exits_ = false;
  pid_t process_ = getpid();
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
class WorkerGroup {
 public:
  /// This process alone.
  WorkerGroup() = default;
  /// The communicator of a host program, which owns MPI.
  explicit WorkerGroup(mpi::CommRef comm);
  /// MPI_COMM_WORLD, where MPI runs already or a launcher has started this process; else this process alone. Throws and ends the
  /// process as the constructor with a resolver does.
  explicit WorkerGroup(std::chrono::milliseconds start_timeout);
  /// The part of the processes of `whole`, with the membership `all`, that give the same colour, ranked by key. A collective
  /// call of `all`; what is made of the part's world is made while the Part lives.
  class Part;
  /// All that reads `resolver` is done here. Throws InvalidArgument for a cluster that cannot work, or that differs
  /// between the processes; DeadlineExceeded when not all come within `start_timeout`, which under a launcher, whose
  /// world cannot be interrupted while it starts, ends the process (Watchdog). `thread_level` is asked of MPI where
  /// this starts it.
  template <ClusterResolver R>
  WorkerGroup(const R& resolver, std::chrono::milliseconds start_timeout,
              mpi::ThreadLevel thread_level = mpi::ThreadLevel::funneled)
      : thread_level_(thread_level) {
    constexpr bool can_host = requires { sizeof(detail::WorldHost<R>); };
    static_assert(
        can_host,
        "processes that a resolver lists may have to host their world of MPI themselves: include "
        "<dist/multi_worker.hpp>, which needs PMIx, jansson and OpenSSL, or give MultiWorker the communicator "
        "of a program that owns MPI, dist::mpi::ref(comm)");
    if constexpr (can_host)
      join(
          start_timeout,
          [](const void* of) {
            const R& asked = *static_cast<const R*>(of);
            return Found{asked.cluster_spec(), asked.task(), asked.describe(), detail::WorldHost<R>::join};
          },
          &resolver);
  }

  /// Whether there is no communicator: this process trains alone.
  [[nodiscard]] bool is_alone() const noexcept { return comm_ == MPI_COMM_NULL; }
  [[nodiscard]] mpi::CommRef comm() const noexcept { return mpi::CommRef{comm_}; }
  /// The number of processes.
  [[nodiscard]] std::size_t size() const { return is_alone() ? 1 : mpi::detail::size_of(comm_); }
  /// What this process is in its cluster; none where there is no cluster.
  [[nodiscard]] const std::optional<Task>& task() const noexcept { return task_; }
  /// Where the workers come from, for messages: "TF_CONFIG", "MPI_COMM_WORLD".
  [[nodiscard]] const std::string& source() const noexcept { return source_; }
  /// A membership of the processes, where there are several. A collective call.
  [[nodiscard]] mpi::Communicator connect(const NetworkOptions& options) const {
    return mpi::Communicator{comm(), options};
  }

  /// The work of the processes together, as long as it lives.
  class JobScope : public detail::MpiRuntime::JobScope {
   public:
    JobScope() : detail::MpiRuntime::JobScope(started()) {}
  };
  /// What this process knows about the others: in a hosted world one for all its strategies, because the lifeline reports
  /// each loss once.
  /// A part counts its workers anew, and knows nothing at first.
  [[nodiscard]] std::shared_ptr<PeerHealth> known_peers() const;
  /// The end of a strategy, for the end of the process, which needs to know about the others: how they were, and how long
  /// collectives waited for them.
  void end_strategy(const std::shared_ptr<PeerHealth>& health, std::chrono::nanoseconds timeout) const;

  /// What this library started in this process.
  [[nodiscard]] static detail::MpiRuntime& started() { return detail::MpiRuntime::of_process(); }

 private:
  /// What a resolver found, and how the world that processes host themselves is joined.
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

  /// `find` asks the resolver, which is passed on to it.
  void join(std::chrono::milliseconds start_timeout, Found (*find)(const void* resolver), const void* resolver);
  void join(Found found, std::chrono::milliseconds start_timeout);

  [[nodiscard]] static std::string name_of(std::string_view role);

  void join_launched(const ClusterSpec& cluster, const std::optional<Task>& task, const Launcher& launcher,
                     std::chrono::milliseconds start_timeout);

  /// Every process sees the claims of all, so all throw or none.
  void require_agreement(const ClusterSpec& cluster, const std::vector<Claim>& claims) const;

  void host(const Found& found, std::chrono::milliseconds start_timeout);

  MPI_Comm comm_ = MPI_COMM_NULL;
  bool is_part_ = false;  // of the processes of another world
  std::optional<Task> task_;
  std::string source_ = "nothing";
  mpi::ThreadLevel thread_level_ = mpi::ThreadLevel::funneled;
};

class WorkerGroup::Part {
 public:
  Part(const WorkerGroup& whole, const std::optional<mpi::Communicator>& all, std::size_t color, std::size_t key);

  [[nodiscard]] const WorkerGroup& world() const noexcept { return world_; }

 private:
  std::optional<mpi::SplitComm> split_;  // none of a process that is alone
  WorkerGroup world_;
};

}  // namespace dist

#ifndef DIST_COMPILED_MPI
#include <dist/cluster/mpi/worker_group.ipp>
#endif
