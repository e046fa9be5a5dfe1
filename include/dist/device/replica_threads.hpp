#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/aligned_buffer.hpp>
#include <dist/core/error.hpp>
#include <dist/device/affinity.hpp>
#include <dist/device/wait.hpp>

namespace dist {

/// What the replicas of one `run` know of each other: who failed, and who has already returned. A replica that waits for
/// a peer looks here, so that it never waits for one that will not come.
class RunStatus {
 public:
  explicit RunStatus(std::size_t replicas) : replicas_(replicas), returned_(new Flag[replicas]) {}

  [[nodiscard]] std::size_t replicas() const noexcept { return replicas_; }
  [[nodiscard]] bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  [[nodiscard]] bool has_returned(std::size_t replica) const noexcept {
    return returned_[replica].run.load(std::memory_order_acquire) == run_;
  }

 private:
  friend class ReplicaThreads;

  struct alignas(cache_line) Flag {
    std::atomic<std::uint32_t> run{0};
  };

  std::size_t replicas_;
  std::unique_ptr<Flag[]> returned_;
  std::uint32_t run_ = 0;  // written between runs only
  std::atomic<bool> failed_{false};
};

/// One thread per replica: the thread that calls `run` is replica 0, the others are persistent workers, each pinned to a
/// processor of its own when there are enough of them. A `run` costs about a microsecond when cores are free: one store
/// that the spinning workers see. Workers that find nothing to do sleep after a bounded spin.
class ReplicaThreads {
  struct Nothing {
    void operator()() const noexcept {}
  };

 public:
  static constexpr std::size_t most_replicas = 4096;

  /// Throws InvalidArgument when there are no replicas, or more than `most_replicas`, OutOfMemory when the system gives no
  /// threads for them.
  explicit ReplicaThreads(std::size_t replicas) : status_(checked(replicas)) {
    const std::vector<std::size_t> processors = allowed_processors();
    const bool own_cores = replicas <= processors.size();
    budget_ = own_cores ? detail::SpinBudget::own_core() : detail::SpinBudget::shared_core();
    workers_.reserve(replicas - 1);
    try {
      // The caller keeps whichever processor the system gives it: the first, as the workers hold the others.
      for (std::size_t replica = 1; replica < replicas; ++replica)
        workers_.emplace_back([this, replica, own_cores, processor = processors[replica % processors.size()]] {
          if (own_cores) pin_this_thread(processor);
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
  [[nodiscard]] detail::SpinBudget spin_budget() const noexcept { return budget_; }

  /// Calls `task(replica)` once on every replica's thread and returns when all have returned.
  ///
  /// The first exception that leaves a task becomes a ReplicaError here, after a call of `after_failure`, which puts in order
  /// what the failed run left behind while no other can start. Throws WrongStrategy when a run is already
  /// going on: from inside a replica function, or from a second thread.
  template <class Task, class AfterFailure = Nothing>
  void run(Task&& task, AfterFailure&& after_failure = {}) {
    if (busy_.exchange(true, std::memory_order_acquire))
      throw WrongStrategy("run was called while a run of the same strategy is going on",
                          "a replica function, or a second thread, called it",
                          "Call run from one thread, outside replica functions");
    const Idle idle_at_exit{busy_};
    argument_ = const_cast<void*>(static_cast<const void*>(&task));
    task_ = [](void* argument, std::size_t replica) {
      (*static_cast<std::remove_reference_t<Task>*>(argument))(replica);
    };
    ++status_.run_;
    start_workers();
    perform(0);
    for (std::size_t replica = 1; replica < size(); ++replica) await(replica);
    if (!status_.failed()) return;
    after_failure();
    rethrow();
  }

 private:
  using TaskCall = void (*)(void*, std::size_t);
  struct Idle {
    std::atomic<bool>& busy;
    ~Idle() { busy.store(false, std::memory_order_release); }
  };

  static std::size_t checked(std::size_t replicas) {
    if (replicas == 0 || replicas > most_replicas)
      throw InvalidArgument("A strategy cannot have that many replicas",
                            text(replicas, " were asked for, 1 to ", most_replicas, " are possible"),
                            "Ask for as many as there are cores, or leave the number out to get that");
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
        failed_replica_ = replica;
        cause_ = std::current_exception();
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
    const std::exception_ptr cause = std::exchange(cause_, nullptr);
    try {
      std::rethrow_exception(cause);
    } catch (const std::exception& exception) {
      throw ReplicaError(failed_replica_, size(), exception.what(), cause);
    } catch (...) {
      throw ReplicaError(failed_replica_, size(), "it threw something that is not a std::exception", cause);
    }
  }

  RunStatus status_;
  detail::SpinBudget budget_{};
  TaskCall task_ = nullptr;
  void* argument_ = nullptr;
  std::size_t failed_replica_ = 0;
  std::exception_ptr cause_;
  std::atomic<bool> failing_{false};
  std::atomic<bool> busy_{false};
  alignas(cache_line) std::atomic<std::uint32_t> start_{0};
  std::vector<std::thread> workers_;  // last: the threads use everything above
};

}  // namespace dist
