#pragma once

#include <sched.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/pointers.hpp>
#include <dist/core/thread_name.hpp>
#include <dist/core/threads.hpp>
#include <dist/device/affinity.hpp>
#include <dist/device/wait.hpp>

namespace dist {

namespace detail {

/// Thrown in a replica that waits for a peer that has failed: it only unwinds the replica function, because the peer's
/// own exception is the one that the caller of `run` sees.
struct PeerFailed {};

}  // namespace detail

/// What the replicas of one `run` know of each other: which failed, and which have returned. A replica that waits
/// for a peer looks here, so that it never waits for one that will not come.
class RunStatus {
 public:
  explicit RunStatus(std::size_t replicas) : replicas_(replicas), in_sync_(replicas), returned_(new Flag[replicas]) {}

  [[nodiscard]] std::size_t replicas() const noexcept { return replicas_; }
  /// How errors number a replica: among the replicas of all processes.
  [[nodiscard]] std::size_t id(std::size_t replica) const noexcept { return first_id_ + replica; }
  [[nodiscard]] std::size_t in_sync() const noexcept { return in_sync_; }
  [[nodiscard]] bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  [[nodiscard]] bool has_returned(std::size_t replica) const noexcept {
    return returned_[replica].run.load(std::memory_order_acquire) == run_;
  }

  /// Notes that `failure` began in this replica, although it leaves the replica functions of others, too.
  void blame(std::size_t replica, const std::exception_ptr& failure) const {
    const std::lock_guard lock{blaming_};
    blamed_.emplace_back(replica, failure);
  }

 private:
  friend class ReplicaThreads;

  /// The replica in which `failure`, which left the replica function of `replica`, began.
  [[nodiscard]] std::size_t culprit(std::size_t replica, const std::exception_ptr& failure) const {
    const std::lock_guard lock{blaming_};
    for (const auto& [origin, blamed] : blamed_)
      if (blamed == failure) return origin;
    return replica;
  }

  struct alignas(cache_line) Flag {
    std::atomic<std::uint32_t> run{0};
  };

  std::size_t replicas_;
  std::size_t first_id_ = 0;
  std::size_t in_sync_;
  std::unique_ptr<Flag[]> returned_;
  std::uint32_t run_ = 0;  // written between runs only
  std::atomic<bool> failed_{false};
  mutable std::mutex blaming_;
  mutable std::vector<std::pair<std::size_t, std::exception_ptr>> blamed_;
};

/// One thread per replica: the thread that calls `run` is replica 0, the others are persistent workers, each pinned to
/// a processor of its own where it is given one. A `run` costs about a microsecond when cores are free: one store that
/// the spinning workers see. Workers that find nothing to do sleep after a bounded spin.
class ReplicaThreads {
  struct Nothing {
    void operator()() const noexcept {}
  };

 public:
  static constexpr std::size_t most_replicas = 4096;

  /// `processors` are one for each replica, or none when replicas share processors and the system places them. A run
  /// waits at most `timeout` for another thread's run to end, and with 0 as long as it takes.
  ///
  /// Throws InvalidArgument when there are no replicas, or more than `most_replicas`, OutOfMemory when the system gives
  /// no threads for them.
  explicit ReplicaThreads(std::size_t replicas, std::span<const std::size_t> processors = {},
                          std::chrono::nanoseconds timeout = std::chrono::minutes{10})
      : status_(checked(replicas)), timeout_(timeout.count()), processors_(processors.begin(), processors.end()) {
    DIST_EXPECT(processors.empty() || processors.size() == replicas);
    budget_ = processors.empty() ? detail::SpinBudget::shared_core() : detail::SpinBudget::own_core();
    workers_.reserve(replicas - 1);
    try {
      for (std::size_t replica = 1; replica < replicas; ++replica)
        workers_.emplace_back([this, replica] {
          if (!processors_.empty()) pin_this_thread(processors_[replica]);
          work(replica);
        });
    } catch (const std::exception& refusal) {
      stop();
      throw OutOfMemory(text("No thread for replica ", workers_.size() + 1, " of ", replicas), refusal.what(),
                        "Ask for fewer replicas, or raise the limit on threads (ulimit -u)");
    }
  }
  ReplicaThreads(const ReplicaThreads&) = delete;
  ReplicaThreads& operator=(const ReplicaThreads&) = delete;

  ~ReplicaThreads() { stop(); }

  [[nodiscard]] std::size_t size() const noexcept { return status_.replicas(); }
  [[nodiscard]] const RunStatus& status() const noexcept { return status_; }
  /// Lets errors number the replicas from `first_id` on, of `in_sync` ones in all processes. Between runs only.
  void set_ids(std::size_t first_id, std::size_t in_sync) noexcept {
    status_.first_id_ = first_id;
    status_.in_sync_ = in_sync;
  }
  [[nodiscard]] detail::SpinBudget spin_budget() const noexcept { return budget_; }
  /// Whether the calling thread is inside a replica function of these replicas.
  [[nodiscard]] bool runs_here() const noexcept {
    if (!busy_.load(std::memory_order_relaxed)) return false;
    const std::thread::id self = std::this_thread::get_id();
    if (caller_.load(std::memory_order_relaxed) == self) return true;
    for (const std::thread& worker : workers_)
      if (worker.get_id() == self) return true;
    return false;
  }

  /// Calls `task(replica)` once on every replica's thread and returns when all have returned.
  ///
  /// The first exception that leaves a task becomes a ReplicaError here. Before, and after every other run,
  /// `after_run()` is called, which puts in order what the run left behind while no other can start.
  ///
  /// Runs of several threads follow each other (spec H20): one waits for the other's end, and throws DeadlineExceeded
  /// when it does not come in time. Throws WrongStrategy when a replica function of these replicas calls it.
  template <class Task, class AfterRun = Nothing>
  void run(Task&& task, AfterRun&& after_run = {}) {
    if (busy_.exchange(true, std::memory_order_acquire)) await_turn();
    const Idle idle_at_exit{*this};
    caller_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    argument_ = const_cast<void*>(static_cast<const void*>(&task));
    task_ = [](void* argument, std::size_t replica) {
      (*static_cast<std::remove_reference_t<Task>*>(argument))(replica);
    };
    ++status_.run_;
    leave_workers_processors();
    start_workers();
    perform(0);
    for (std::size_t replica = 1; replica < size(); ++replica) await(replica);
    after_run();
    if (status_.failed()) rethrow();
    status_.blamed_.clear();
  }

 private:
  using TaskCall = void (*)(void*, std::size_t);
  struct Idle {
    ReplicaThreads& threads;
    ~Idle() {
      threads.caller_.store(std::thread::id{}, std::memory_order_relaxed);
      threads.busy_.store(false, std::memory_order_release);
    }
  };

  /// The caller is not bound. But where the system woke it on the processor of a sleeping worker, the two would share
  /// that for milliseconds, in which all replicas wait for them.
  void leave_workers_processors() const noexcept {
    if (processors_.empty()) return;
    const auto here = static_cast<std::size_t>(sched_getcpu());
    if (std::find(processors_.begin() + 1, processors_.end(), here) != processors_.end())
      move_this_thread(processors_.front());
  }

  /// Waits for the run of another thread to end, and begins this thread's.
  void await_turn() {
    if (runs_here())
      throw WrongStrategy(
          "run was called while a run of the same strategy is going on", "a replica function called it",
          "Call run outside replica functions and what they merge; merge_call sees all replicas at once");
    const std::int64_t start = detail::monotonic_nanoseconds();
    while (busy_.exchange(true, std::memory_order_acquire)) {
      if (timeout_ > 0 && detail::monotonic_nanoseconds() - start > timeout_)
        throw DeadlineExceeded("run waited too long for the run of another thread to end",
                               text("it waited ", static_cast<double>(timeout_) * 1e-9, " s"),
                               "Find out what that replica function waits for, or give the strategy a longer timeout");
      std::this_thread::sleep_for(std::chrono::microseconds{50});
    }
  }

  static std::size_t checked(std::size_t replicas) {
    if (replicas == 0 || replicas > most_replicas)
      throw InvalidArgument("A strategy cannot have that many replicas",
                            text(replicas, " were asked for, 1 to ", most_replicas, " are possible"),
                            "Ask for as many as there are cores");
    return replicas;
  }

  void stop() noexcept {
    task_ = nullptr;
    start_workers();
    for (std::thread& worker : workers_) worker.join();
  }

  void start_workers() noexcept {
    start_.fetch_add(1, std::memory_order_release);
    start_.notify_all();
  }

  void work(std::size_t replica) noexcept {
    detail::name_this_thread(text("dist replica ", replica));
    for (std::uint32_t seen = 0;;) {
      seen = detail::wait_for_change(start_, seen, budget_);
      if (task_ == nullptr) return;
      perform(replica);
    }
  }

  void perform(std::size_t replica) noexcept {
    try {
      task_(argument_, replica);
    } catch (...) {
      if (!failing_.exchange(true, std::memory_order_acq_rel)) {
        cause_ = std::current_exception();
        failed_replica_ = status_.culprit(replica, cause_);
        status_.failed_.store(true, std::memory_order_release);
      }
    }
    auto& returned = status_.returned_[replica].run;
    returned.store(status_.run_, std::memory_order_release);
    if (replica != 0) returned.notify_one();
  }

  void await(std::size_t replica) const noexcept {
    const auto& returned = status_.returned_[replica].run;
    for (std::uint32_t seen = returned.load(std::memory_order_acquire); seen != status_.run_;)
      seen = detail::wait_for_change(returned, seen, budget_);
  }

  [[noreturn]] void rethrow() {
    failing_.store(false, std::memory_order_relaxed);
    status_.failed_.store(false, std::memory_order_relaxed);
    status_.blamed_.clear();
    const std::exception_ptr cause = std::exchange(cause_, nullptr);
    const std::size_t failed = status_.id(failed_replica_);
    try {
      std::rethrow_exception(cause);
    } catch (const std::exception& exception) {
      throw ReplicaError(failed, status_.in_sync(), exception.what(), cause);
    } catch (...) {
      throw ReplicaError(failed, status_.in_sync(), "it threw something that is not a std::exception", cause);
    }
  }

  RunStatus status_;
  std::int64_t timeout_;
  std::vector<std::size_t> processors_;  // of the replicas; none where the system places them
  detail::SpinBudget budget_{};
  TaskCall task_ = nullptr;
  void* argument_ = nullptr;
  std::size_t failed_replica_ = 0;
  std::exception_ptr cause_;
  std::atomic<bool> failing_{false};
  std::atomic<bool> busy_{false};
  std::atomic<std::thread::id> caller_{};  // of the run that is going on
  alignas(cache_line) std::atomic<std::uint32_t> start_{0};
  std::vector<std::thread> workers_;  // last: the threads use everything above
};

}  // namespace dist
