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

#include <dist/coordinator/error.hpp>
#include <dist/coordinator/remote_result.hpp>
#include <dist/core/condition_variable.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/light_memory.hpp>

namespace dist {

/// A scheduled function with its arguments, as it goes to a worker.
struct Closure {
  using Clock = std::chrono::steady_clock;

  std::vector<std::byte> message;  ///< what the worker gets
  std::shared_ptr<detail::RemoteResult> result = std::make_shared<detail::RemoteResult>();
  std::string_view function = {};          ///< its name in messages, which outlives the closure
  std::optional<std::size_t> worker = {};  ///< the only worker that may run it (spec L20)
  std::size_t attempts = 0;                ///< how often a worker has taken it
  std::uint64_t round = 0;                 ///< how many errors the queue had had when a worker took it
  Clock::time_point since = {};            ///< when it was put into the queue, or put back
};

/// The functions that wait for a worker, and the number of those that run. `schedule`, `join` and `done` of a coordinator
/// share it with the threads of its workers. It knows no transport.
///
/// The first of several errors counts (spec L05). It cancels what waits at once, and asks what runs to stop; the next `put`,
/// `join` or `done` waits until nothing runs, throws the error and forgets it, and the queue goes on as before. Where several
/// threads wait, one of them throws it.
class ClosureQueue {
 public:
  using Clock = Closure::Clock;
  /// The end of a wait; none: no limit.
  using Until = std::optional<Clock::time_point>;

  /// How many closures may wait (spec L02). Closures for one worker, and those that are put back, do not count.
  static constexpr std::size_t default_capacity = 256 * 1024;

  explicit ClosureQueue(std::size_t capacity = default_capacity);
  ClosureQueue(const ClosureQueue&) = delete;
  ClosureQueue& operator=(const ClosureQueue&) = delete;

  // ---- for those who schedule ----

  /// Adds a closure once there is room. Throws the error of an earlier closure, DeadlineExceeded where there is no room
  /// in time, and Cancelled where the queue is closed.
  void put(Closure closure, Until until = {});

  /// Waits until no closure waits or runs, and returns true; false after `until`. Throws the error of a closure.
  [[nodiscard]] bool wait_until_idle(Until until);
  /// Waits like `wait`, and throws DeadlineExceeded after `until` (spec L04).
  void join(Until until = {});
  /// Whether no closure waits or runs (spec L06). Throws the error of a closure, once nothing runs any more, and
  /// DeadlineExceeded.
  [[nodiscard]] bool done(Until until = {});

  // ---- for the threads of workers ----

  /// Waits for the next closure of a worker: one that only this worker may run, or else the first of those for all.
  /// Returns none after `until`, once the queue is closed, and after `wake` where the worker has an errand. Whoever takes
  /// a closure calls `finish`, `fail`, `abort` or `put_back` with it, once.
  [[nodiscard]] std::optional<Closure> take(std::size_t worker, const std::atomic<bool>* errand = nullptr,
                                            Until until = {});
  /// Makes all workers that wait look at their errands.
  void wake();

  // The result is there before `mutex_` is free, so whoever has fetched it sees a queue without the closure.

  void finish(const Closure& closure, std::vector<std::byte> bytes);
  /// The closure has failed, which cancels what waits, and what runs and stops.
  void fail(const Closure& closure, std::exception_ptr error);
  /// The closure has stopped because another one failed.
  void cancel_stopped(const Closure& closure);
  /// The closure runs again, before all others (spec L14), unless an error or the end of the queue cancels it.
  void put_back(Closure closure);
  /// Nobody knows what the closure came to, because its coordinator ends.
  void abort(const Closure& closure);
  /// Gives the result of a closure up that no `abort` may ever reach. It may still be finished; the first outcome counts.
  static void abort_result(detail::RemoteResult& result);
  /// The number of errors so far. Closures of earlier rounds are to stop.
  [[nodiscard]] std::uint64_t rounds() const noexcept { return rounds_.load(); }
  /// An error that is no closure's, such as a worker that does not come back.
  void fail(std::exception_ptr error);

  // ---- for the coordinator ----

  /// Cancels what waits. From now on `take` returns none and `put` throws.
  void close();
  /// Calls `stop(round)` after each error, in the thread that reports it, to ask the closures of earlier rounds to stop, until it
  /// is given another one or an empty one. Then the one before is not called any more.
  void set_on_error(detail::UniqueFunction<void, std::uint64_t> stop);

  /// A look at the queue, for messages and metrics.
  struct Counts {
    std::size_t waiting = 0;  ///< closures, those for one worker among them
    std::size_t in_flight = 0;
    std::uint64_t finished = 0;   ///< closures with a result so far
    std::uint64_t failed = 0;     ///< errors so far
    std::uint64_t cancelled = 0;  ///< closures that did not run, or stopped, because of an error or the end
    Clock::duration oldest{};     ///< how long the closure has waited that waits longest
  };
  [[nodiscard]] Counts counts() const;

 private:
  // The caller of what follows holds `mutex_`.

  /// Returns false where the time is up and `over()` does not hold.
  template <class Over>
  [[nodiscard]] static bool wait(detail::ConditionVariable& changed, std::unique_lock<std::mutex>& lock, Until until,
                                 Over over);
  [[nodiscard]] bool is_idle() const;
  [[nodiscard]] std::deque<Closure>* source_for(std::size_t worker);
  /// A closure no longer runs.
  void land();
  void store(std::exception_ptr error);
  void cancel_waiting();
  [[nodiscard]] std::string_view reason_to_cancel() const;
  void cancel(const Closure& closure, std::string_view because);
  /// Throws the stored error once nothing runs, and forgets it.
  void throw_error(std::unique_lock<std::mutex>& lock, Until until);
  [[noreturn]] void throw_late() const;

  /// There is something for threads of workers to look at.
  void tell_workers();
  /// The caller does not hold `mutex_`.
  void ask_to_stop(std::uint64_t round);

  const std::size_t capacity_;
  /// Grows with each, for threads that look before they sleep.
  std::atomic<std::uint64_t> told_{0};
  mutable std::mutex mutex_;
  detail::ConditionVariable work_;  ///< for threads of workers
  detail::ConditionVariable room_;  ///< for those that put
  detail::ConditionVariable idle_;  ///< for those that wait until nothing runs
  std::deque<Closure> waiting_;
  std::map<std::size_t, std::deque<Closure>> tagged_;  ///< by worker; none is empty
  std::size_t in_flight_ = 0;
  std::exception_ptr error_;
  std::atomic<std::uint64_t> rounds_{0};  ///< errors that were kept
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
