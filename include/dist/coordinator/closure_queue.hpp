#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include <dist/coordinator/remote_value.hpp>
#include <dist/core/condition_variable.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/light_memory.hpp>

namespace dist {

/// A scheduled function with its arguments, encoded for a worker.
struct Closure {
  /// The clock of deadlines and waiting times.
  using Clock = std::chrono::steady_clock;

  std::vector<std::byte> message;  ///< sent to the worker

  /// Receives the outcome.
  std::shared_ptr<detail::RemoteResult> result = std::make_shared<detail::RemoteResult>();
  std::string_view function = {};          ///< name in messages; outlives the closure
  std::optional<std::size_t> worker = {};  ///< the only worker that may run it (spec L20)
  std::size_t attempts = 0;                ///< number of workers that have taken it
  std::uint64_t round = 0;                 ///< number of errors of the queue when a worker took it
  Clock::time_point since = {};            ///< time of the last put or put_back
};

/// The queue of scheduled functions, and the number of running ones, shared by the callers of a coordinator and the
/// threads of its workers. Independent of the transport.
///
/// Only the first of several errors is reported (spec L05). It cancels waiting closures, and asks running ones to stop.
/// The next `put`, `join` or `done` waits until nothing runs and throws it in one thread; then the queue is usable
/// again.
class ClosureQueue {
 public:
  /// The clock of deadlines and waiting times.
  using Clock = Closure::Clock;
  /// The end of a wait; nullopt: no limit.
  using Until = std::optional<Clock::time_point>;

  /// The default maximum of waiting closures (spec L02), without closures for one worker and closures that were put
  /// back.
  static constexpr std::size_t default_capacity = 256 * 1024;

  /// A queue in which at most `capacity` closures wait. Throws InvalidArgument if `capacity` is 0.
  explicit ClosureQueue(std::size_t capacity = default_capacity);
  ClosureQueue(const ClosureQueue&) = delete;
  ClosureQueue& operator=(const ClosureQueue&) = delete;

  // ---- for callers of the coordinator ----

  /// Adds a closure; waits while the queue is full. Throws the error of an earlier closure, DeadlineExceeded after
  /// `until`, and Cancelled if the queue is closed.
  void put(Closure closure, Until until = {});

  /// Returns true once no closure waits or runs, or false after `until`. Throws the error of a closure.
  [[nodiscard]] bool wait_until_idle(Until until);
  /// Waits until no closure waits or runs. Throws the error of a closure, and DeadlineExceeded (spec L04).
  void join(Until until = {});
  /// True if no closure waits or runs (spec L06). After an error, waits until nothing runs and throws it, or throws
  /// DeadlineExceeded.
  [[nodiscard]] bool done(Until until = {});

  // ---- for the threads of workers ----

  /// Waits for a closure, first one for this worker only, then one for any worker. Returns nullopt after `until`, once
  /// the queue is closed, or after `wake` if `*errand` is true. The caller must then call `finish`, `fail`, `abort` or
  /// `put_back`.
  [[nodiscard]] std::optional<Closure> take(std::size_t worker, const std::atomic<bool>* errand = nullptr,
                                            Until until = {});
  /// Makes all waiting workers check their errands.
  void wake();

  // Stores the result under `mutex_`, so that the queue does not count the closure when its result is visible.

  /// Stores the result of a closure that a worker has run.
  void finish(const Closure& closure, std::vector<std::byte> bytes);
  /// Stores the error. Cancels waiting closures, and running ones that stop.
  void fail(const Closure& closure, std::exception_ptr error);
  /// Cancels a closure that stopped because another one failed.
  void cancel_stopped(const Closure& closure);
  /// Puts a closure at the front of the queue (spec L14). Cancels it after an error, or if the queue is closed.
  void put_back(Closure closure);
  /// Aborts a closure with unknown outcome, because the coordinator ends.
  void abort(const Closure& closure);
  /// Aborts a result without its queue. The closure may still finish: the first outcome counts.
  static void abort_result(detail::RemoteResult& result);
  /// The number of errors. Closures of earlier rounds should stop.
  [[nodiscard]] std::uint64_t rounds() const noexcept { return rounds_.load(); }
  /// Stores an error outside closures, such as a missing worker.
  void fail(std::exception_ptr error);

  // ---- for the coordinator ----

  /// Cancels waiting closures. From then on, `take` returns nullopt, and `put` throws.
  void close();
  /// Sets the function `stop(round)` that each error calls, in the thread that reports it, to stop closures of earlier
  /// rounds. Empty: none. On return, the previous function is not called any more.
  void set_on_error(detail::UniqueFunction<void, std::uint64_t> stop);

  /// A snapshot of the queue.
  struct Counts {
    std::size_t waiting = 0;      ///< closures, including those for one worker
    std::size_t in_flight = 0;    ///< closures that workers have taken
    std::uint64_t finished = 0;   ///< closures with a result
    std::uint64_t failed = 0;     ///< errors
    std::uint64_t cancelled = 0;  ///< closures that did not run, or stopped, after an error or `close`
    Clock::duration oldest{};     ///< longest time that a closure has waited
  };
  /// Returns the state of the queue at one moment. Thread-safe.
  [[nodiscard]] Counts counts() const;

 private:
  // The following functions require `mutex_`.

  /// Returns false if `over()` is false after `until`.
  template <class Over>
  [[nodiscard]] static bool wait(detail::ConditionVariable& changed, std::unique_lock<std::mutex>& lock, Until until,
                                 Over over);
  [[nodiscard]] bool is_idle() const;
  [[nodiscard]] std::deque<Closure>* source_for(std::size_t worker);
  void land();
  void store(std::exception_ptr error);
  void cancel_waiting();
  [[nodiscard]] std::string_view reason_to_cancel() const;
  void cancel(const Closure& closure, std::string_view because);
  /// Waits until nothing runs, then throws and clears the error, if any.
  void throw_error(std::unique_lock<std::mutex>& lock, Until until);
  [[noreturn]] void throw_late() const;

  void tell_workers();
  /// Requires that `mutex_` is free.
  void ask_to_stop(std::uint64_t round);

  const std::size_t capacity_;
  /// Counts `tell_workers` and `put`, for threads that poll before they sleep.
  std::atomic<std::uint64_t> told_{0};
  mutable std::mutex mutex_;
  detail::ConditionVariable work_;  ///< for threads of workers
  detail::ConditionVariable room_;  ///< for `put`
  detail::ConditionVariable idle_;  ///< for `join` and `done`
  std::deque<Closure> waiting_;
  std::map<std::size_t, std::deque<Closure>> tagged_;  ///< by worker; no queue is empty
  std::size_t in_flight_ = 0;
  std::exception_ptr error_;
  std::atomic<std::uint64_t> rounds_{0};  ///< number of stored errors
  bool closed_ = false;
  std::uint64_t finished_ = 0;
  std::uint64_t failed_ = 0;
  std::uint64_t cancelled_ = 0;

  std::mutex on_error_mutex_;
  detail::UniqueFunction<void, std::uint64_t> on_error_;
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/coordinator/closure_queue.ipp>
#endif
