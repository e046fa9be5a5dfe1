#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <dist/core/aligned_buffer.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/threads.hpp>
#include <dist/device/wait.hpp>

namespace dist {

namespace detail {

/// Thrown in a replica that waits for a failed peer, to unwind its replica function. The caller of `run` gets the
/// peer's exception.
struct PeerFailed {};

}  // namespace detail

/// The state of the replicas during a `run`: which have failed, and which have returned. Replicas that wait for a peer
/// check it, so that they never wait for one that has ended.
class RunStatus {
 public:
  /// The state of replicas numbered from 0, before their first run.
  explicit RunStatus(std::size_t replicas);

  /// The number of replicas of this process.
  [[nodiscard]] std::size_t replicas() const noexcept { return replicas_; }
  /// The number of a replica in errors: among the replicas of all processes.
  [[nodiscard]] std::size_t id(std::size_t replica) const noexcept { return first_id_ + replica; }
  /// The number of replicas of all processes.
  [[nodiscard]] std::size_t in_sync() const noexcept { return in_sync_; }
  /// True if a replica function of this run has thrown.
  [[nodiscard]] bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  /// True if the function of `replica` has ended in this run.
  [[nodiscard]] bool has_returned(std::size_t replica) const noexcept {
    return returned_[replica].run.load(std::memory_order_acquire) == run_;
  }

  /// Records that `failure` originated in this replica, even if other replica functions throw it, too.
  void blame(std::size_t replica, const std::exception_ptr& failure) const;

 private:
  friend class ReplicaThreads;

  /// Returns the replica in which `failure`, thrown by the replica function of `replica`, originated.
  [[nodiscard]] std::size_t culprit(std::size_t replica, const std::exception_ptr& failure) const;

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
/// a separate processor if given. With free cores, a `run` costs about a microsecond. Idle workers sleep after a
/// bounded spin.
class ReplicaThreads {
 public:
  /// The function of one replica.
  using Task = detail::FunctionRef<void(std::size_t replica)>;

  /// Maximum number of replicas.
  static constexpr std::size_t most_replicas = 4096;

  /// `processors` has one entry per replica, or none if replicas share processors and the system places them. `timeout`
  /// limits the wait for a run of another thread (0: no limit).
  ///
  /// Throws InvalidArgument unless there are 1 to `most_replicas` replicas, OutOfMemory if the system cannot create
  /// threads.
  explicit ReplicaThreads(std::size_t replicas, std::span<const std::size_t> processors = {},
                          std::chrono::nanoseconds timeout = std::chrono::minutes{10});
  ReplicaThreads(const ReplicaThreads&) = delete;
  ReplicaThreads& operator=(const ReplicaThreads&) = delete;

  ~ReplicaThreads();

  /// The number of replicas.
  [[nodiscard]] std::size_t size() const noexcept { return status_.replicas(); }
  /// The state of the replicas, which waits for peers check.
  [[nodiscard]] const RunStatus& status() const noexcept { return status_; }
  /// Numbers the replicas in errors from `first_id`, among `in_sync` replicas of all processes. Call it between runs.
  void set_ids(std::size_t first_id, std::size_t in_sync) noexcept {
    status_.first_id_ = first_id;
    status_.in_sync_ = in_sync;
  }
  /// The limits of polling in a wait for other replicas, before it sleeps.
  [[nodiscard]] detail::SpinBudget spin_budget() const noexcept { return budget_; }
  /// True if the calling thread is in a replica function of these replicas.
  [[nodiscard]] bool runs_here() const noexcept;

  /// An exclusive, recursive lock of the state that replicas share. Throws DeadlineExceeded if another thread holds it
  /// longer than the timeout, WrongStrategy during a run in the threads of all replicas except the first.
  class Turn {
   public:
    /// Takes the lock, or enters it again in the same thread.
    explicit Turn(const ReplicaThreads& threads) : threads_(threads) {
      const std::thread::id self = std::this_thread::get_id();
      is_outermost_ = threads.in_turn_.load(std::memory_order_relaxed) != self;
      std::thread::id none{};
      if (is_outermost_ && !threads.in_turn_.compare_exchange_strong(none, self, std::memory_order_acquire))
        threads.await_turn();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() {
      if (is_outermost_) threads_.in_turn_.store(std::thread::id{}, std::memory_order_release);
    }

   private:
    const ReplicaThreads& threads_;
    bool is_outermost_;
  };

  /// Calls `task(replica)` once in each replica's thread and waits for all.
  ///
  /// The first exception of a task is thrown as ReplicaError. Each run ends with a call of `after_run()`, before that
  /// exception and before other runs, to reset the state.
  ///
  /// Runs of several threads take turns (spec H20). Throws DeadlineExceeded if the wait for other runs times out,
  /// WrongStrategy if called in a replica function of these replicas.
  void run(Task task, detail::FunctionRef<void()> after_run) {
    const Turn turn{*this};
    if (running_.load(std::memory_order_relaxed)) refuse_nested_run();
    const Running running{*this};
    task_ = task;
    ++status_.run_;
    leave_workers_processors();
    if (size() > 1) start_workers();
    perform(0, task);
    for (std::size_t replica = 1; replica < size(); ++replica) await(replica);
    after_run();
    if (status_.failed()) rethrow();
    status_.blamed_.clear();
  }
  /// Calls `task(replica)` in the thread of each replica, and waits for all. Throws the exceptions of the other
  /// overload.
  void run(Task task) {
    run(task, [] {});
  }

 private:
  struct Running {
    explicit Running(ReplicaThreads& threads) : threads_(threads) { set(true); }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    ~Running() { set(false); }

   private:
    void set(bool running) noexcept { threads_.running_.store(running, std::memory_order_relaxed); }

    ReplicaThreads& threads_;
  };

  /// Moves the caller off the workers' processors. The caller is not bound, and if the system scheduled it on the
  /// processor of a sleeping worker, both would share it for milliseconds, delaying all replicas.
  void leave_workers_processors() const noexcept;

  /// Waits for other threads to release the lock, and acquires it.
  void await_turn() const;
  [[noreturn]] static void refuse_nested_run();

  static std::size_t checked(std::size_t replicas);

  void stop() noexcept;

  void start_workers() noexcept {
    start_.fetch_add(1, std::memory_order_release);
    start_.notify_all();
  }

  void work(std::size_t replica) noexcept;

  /// Calls the task and records that this replica has returned. Inlined for a direct call of replica 0's task.
  void perform(std::size_t replica, Task task) noexcept {
    try {
      task(replica);
    } catch (...) {
      note_failure(replica);
    }
    auto& returned = status_.returned_[replica].run;
    returned.store(status_.run_, std::memory_order_release);
    if (replica != 0) returned.notify_one();
  }
  /// Records the current exception.
  void note_failure(std::size_t replica) noexcept;

  void await(std::size_t replica) const noexcept {
    const auto& returned = status_.returned_[replica].run;
    for (std::uint32_t seen = returned.load(std::memory_order_acquire); seen != status_.run_;)
      seen = detail::wait_for_change(returned, seen, budget_);
  }

  [[noreturn]] void rethrow();

  RunStatus status_;
  std::int64_t timeout_;
  std::vector<std::size_t> processors_;  // of the replicas; empty if the system places them
  detail::SpinBudget budget_{};
  std::optional<Task>
      task_;  ///< none when the workers must exit; a member, because the caller's stack is far from the workers
  std::size_t failed_replica_ = 0;
  std::exception_ptr cause_;
  std::atomic<bool> failing_{false};
  std::atomic<bool> running_{false};
  mutable std::atomic<std::thread::id> in_turn_{};
  alignas(cache_line) std::atomic<std::uint32_t> start_{0};
  std::vector<detail::JoinedThread> workers_;  // last: the threads use all other members
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/device/replica_threads.ipp>
#endif
