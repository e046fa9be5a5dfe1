#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/aligned_buffer.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/threads.hpp>
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
  explicit RunStatus(std::size_t replicas);

  [[nodiscard]] std::size_t replicas() const noexcept { return replicas_; }
  /// How errors number a replica: among the replicas of all processes.
  [[nodiscard]] std::size_t id(std::size_t replica) const noexcept { return first_id_ + replica; }
  [[nodiscard]] std::size_t in_sync() const noexcept { return in_sync_; }
  [[nodiscard]] bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  [[nodiscard]] bool has_returned(std::size_t replica) const noexcept {
    return returned_[replica].run.load(std::memory_order_acquire) == run_;
  }

  /// Notes that `failure` began in this replica, although it leaves the replica functions of others, too.
  void blame(std::size_t replica, const std::exception_ptr& failure) const;

 private:
  friend class ReplicaThreads;

  /// The replica in which `failure`, which left the replica function of `replica`, began.
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
                          std::chrono::nanoseconds timeout = std::chrono::minutes{10});
  ReplicaThreads(const ReplicaThreads&) = delete;
  ReplicaThreads& operator=(const ReplicaThreads&) = delete;

  ~ReplicaThreads();

  [[nodiscard]] std::size_t size() const noexcept { return status_.replicas(); }
  [[nodiscard]] const RunStatus& status() const noexcept { return status_; }
  /// Lets errors number the replicas from `first_id` on, of `in_sync` ones in all processes. Between runs only.
  void set_ids(std::size_t first_id, std::size_t in_sync) noexcept {
    status_.first_id_ = first_id;
    status_.in_sync_ = in_sync;
  }
  [[nodiscard]] detail::SpinBudget spin_budget() const noexcept { return budget_; }
  /// Whether the calling thread is inside a replica function of these replicas.
  [[nodiscard]] bool runs_here() const noexcept;

  /// Lets one thread at a time use what the replicas share. A thread that has the turn may take it again. Throws
  /// DeadlineExceeded when the turn of another thread does not end within the timeout, WrongStrategy on the thread of
  /// another replica than the first while a run is going on.
  class Turn {
   public:
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

  /// Calls `task(replica)` once on every replica's thread and returns when all have returned.
  ///
  /// The first exception that leaves a task becomes a ReplicaError here. Before, and after every other run,
  /// `after_run()` is called, which puts in order what the run left behind while no other can start.
  ///
  /// Runs of several threads take turns (spec H20). Throws DeadlineExceeded when the calling thread does not get its turn
  /// in time, WrongStrategy when a replica function of these replicas calls it.
  template <class Task, class AfterRun = Nothing>
  void run(Task&& task, AfterRun&& after_run = {}) {
    const Turn turn{*this};
    if (running_.load(std::memory_order_relaxed)) refuse_nested_run();
    const Running running{*this};
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
  struct Running {
    explicit Running(ReplicaThreads& threads) : threads_(threads) { set(true); }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    ~Running() { set(false); }

   private:
    void set(bool running) noexcept { threads_.running_.store(running, std::memory_order_relaxed); }

    ReplicaThreads& threads_;
  };

  /// The caller is not bound. But where the system woke it on the processor of a sleeping worker, the two would share
  /// that for milliseconds, in which all replicas wait for them.
  void leave_workers_processors() const noexcept;

  /// Waits for the turn of another thread to end, and begins this thread's.
  void await_turn() const;
  [[noreturn]] static void refuse_nested_run();

  static std::size_t checked(std::size_t replicas);

  void stop() noexcept;

  void start_workers() noexcept {
    start_.fetch_add(1, std::memory_order_release);
    start_.notify_all();
  }

  void work(std::size_t replica) noexcept;

  void perform(std::size_t replica) noexcept;

  void await(std::size_t replica) const noexcept {
    const auto& returned = status_.returned_[replica].run;
    for (std::uint32_t seen = returned.load(std::memory_order_acquire); seen != status_.run_;)
      seen = detail::wait_for_change(returned, seen, budget_);
  }

  [[noreturn]] void rethrow();

  RunStatus status_;
  std::int64_t timeout_;
  std::vector<std::size_t> processors_;  // of the replicas; none where the system places them
  detail::SpinBudget budget_{};
  TaskCall task_ = nullptr;
  void* argument_ = nullptr;
  std::size_t failed_replica_ = 0;
  std::exception_ptr cause_;
  std::atomic<bool> failing_{false};
  std::atomic<bool> running_{false};
  mutable std::atomic<std::thread::id> in_turn_{};
  alignas(cache_line) std::atomic<std::uint32_t> start_{0};
  std::vector<detail::JoinedThread> workers_;  // last: the threads use everything above
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/device/replica_threads.ipp>
#endif
