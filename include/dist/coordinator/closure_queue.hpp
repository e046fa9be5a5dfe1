#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/coordinator/error.hpp>
#include <dist/coordinator/remote_result.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/pointers.hpp>

namespace dist {

/// A scheduled function with its arguments, as it goes to a worker.
struct Closure {
  using Clock = std::chrono::steady_clock;

  std::vector<std::byte> message;  ///< what the worker gets
  std::shared_ptr<detail::RemoteResult> result = std::make_shared<detail::RemoteResult>();
  std::string_view function = {};          ///< its name in messages, which outlives the closure
  std::optional<std::size_t> worker = {};  ///< the only worker that may run it (spec L20)
  std::size_t attempts = 0;                ///< how often a worker has taken it
  Clock::time_point since = {};            ///< when it was put into the queue, or put back
};

/// The functions that wait for a worker, and the number of those that run. `schedule`, `join` and `done` of a coordinator
/// share it with the threads of its workers. It knows no transport.
///
/// The first of several errors counts (spec L05). It cancels what waits at once; the next `put`, `join` or `done` waits
/// until nothing runs, throws the error and forgets it, and the queue goes on as before. Where several threads wait, one
/// of them throws it.
class ClosureQueue {
 public:
  using Clock = Closure::Clock;
  /// The end of a wait; none: no limit.
  using Until = std::optional<Clock::time_point>;

  /// How many closures may wait (spec L02). Closures for one worker, and those that are put back, do not count.
  static constexpr std::size_t default_capacity = 256 * 1024;

  explicit ClosureQueue(std::size_t capacity = default_capacity) : capacity_(capacity) {
    if (capacity == 0)
      throw InvalidArgument("A queue of scheduled functions is given no room", "its capacity is 0",
                            "Give it room for at least one function");
  }
  ClosureQueue(const ClosureQueue&) = delete;
  ClosureQueue& operator=(const ClosureQueue&) = delete;

  // ---- for those who schedule ----

  /// Adds a closure once there is room. Throws the error of an earlier closure, DeadlineExceeded where there is no room
  /// in time, and Cancelled where the queue is closed.
  void put(Closure closure, Until until = {}) {
    std::unique_lock lock{mutex_};
    const auto has_room = [&] { return closed_ || closure.worker || waiting_.size() < capacity_; };
    throw_error(lock, until);
    while (!has_room()) {
      if (!wait(room_, lock, until, [&] { return error_ || has_room(); }))
        throw DeadlineExceeded("A function was not scheduled in time",
                               text(waiting_.size(), " others wait for a worker, and ", in_flight_, " run"),
                               "Call join more often, add workers, or wait for longer");
      throw_error(lock, until);
    }
    if (closed_) throw Cancelled("A function was not scheduled", "its coordinator has ended");
    closure.since = Clock::now();
    if (closure.worker) {
      tagged_[*closure.worker].push_back(std::move(closure));
      work_.notify_all();  // only one of those that wait may take it
    } else {
      waiting_.push_back(std::move(closure));
      work_.notify_one();
    }
  }

  /// Waits until no closure waits or runs (spec L04). Throws the error of a closure, and DeadlineExceeded.
  void join(Until until = {}) {
    std::unique_lock lock{mutex_};
    throw_error(lock, until);
    while (!is_idle()) {
      if (!wait(idle_, lock, until, [&] { return error_ || is_idle(); })) throw_late();
      throw_error(lock, until);
    }
  }
  /// Whether no closure waits or runs (spec L06). Throws the error of a closure, once nothing runs any more, and
  /// DeadlineExceeded.
  [[nodiscard]] bool done(Until until = {}) {
    std::unique_lock lock{mutex_};
    throw_error(lock, until);
    return is_idle();
  }

  // ---- for the threads of workers ----

  /// Waits for the next closure of a worker: one that only this worker may run, or else the first of those for all.
  /// Returns none after `until`, once the queue is closed, and after `wake` where the worker has an errand. Whoever takes
  /// a closure calls `finish`, `fail`, `abort` or `put_back` with it, once.
  [[nodiscard]] std::optional<Closure> take(std::size_t worker, const std::atomic<bool>* errand = nullptr,
                                            Until until = {}) {
    std::unique_lock lock{mutex_};
    const auto must_go = [&] { return closed_ || (errand != nullptr && *errand); };
    std::deque<Closure>* from = nullptr;
    const auto may_go = [&] { return must_go() || (from = source_for(worker)) != nullptr; };
    if (!wait(work_, lock, until, may_go) || must_go()) return std::nullopt;
    std::optional<Closure> closure{std::move(from->front())};
    from->pop_front();
    if (from == &waiting_)
      room_.notify_one();
    else if (from->empty())
      tagged_.erase(worker);
    ++in_flight_;
    ++closure->attempts;
    return closure;
  }
  /// Makes all workers that wait look at their errands.
  void wake() {
    const std::lock_guard lock{mutex_};
    work_.notify_all();
  }

  // The result is there before `mutex_` is free, so whoever has fetched it sees a queue without the closure.

  void finish(const Closure& closure, std::vector<std::byte> bytes) {
    const std::lock_guard lock{mutex_};
    closure.result->finish(std::move(bytes));
    ++finished_;
    land();
  }
  /// The closure has failed, which cancels what waits.
  void fail(const Closure& closure, std::exception_ptr error) {
    const std::lock_guard lock{mutex_};
    closure.result->fail(RemoteState::failed, error);
    store(std::move(error));
    land();
  }
  /// The closure runs again, before all others (spec L14), unless an error or the end of the queue cancels it.
  void put_back(Closure closure) {
    const std::lock_guard lock{mutex_};
    if (error_ || closed_) {
      cancel(closure);
    } else {
      closure.since = Clock::now();
      std::deque<Closure>& to = closure.worker ? tagged_[*closure.worker] : waiting_;
      to.push_front(std::move(closure));
      work_.notify_all();
    }
    land();
  }
  /// Nobody knows what the closure came to, because its coordinator ends.
  void abort(const Closure& closure) {
    const std::lock_guard lock{mutex_};
    abort_result(*closure.result);
    land();
  }
  /// Gives the result of a closure up that no `abort` may ever reach. It may still be finished; the first outcome counts.
  static void abort_result(detail::RemoteResult& result) {
    result.fail(RemoteState::aborted,
                std::make_exception_ptr(
                    Cancelled("A scheduled function was aborted", "its coordinator ended while a worker ran it")));
  }
  /// An error that is no closure's, such as a worker that does not come back.
  void fail(std::exception_ptr error) {
    const std::lock_guard lock{mutex_};
    store(std::move(error));
  }

  // ---- for the coordinator ----

  /// Cancels what waits. From now on `take` returns none and `put` throws.
  void close() {
    const std::lock_guard lock{mutex_};
    closed_ = true;
    cancel_waiting();
    work_.notify_all();
    room_.notify_all();
    idle_.notify_all();
  }

  /// A look at the queue, for messages and metrics.
  struct Counts {
    std::size_t waiting = 0;  ///< closures, those for one worker among them
    std::size_t in_flight = 0;
    std::uint64_t finished = 0;   ///< closures with a result so far
    std::uint64_t failed = 0;     ///< errors so far
    std::uint64_t cancelled = 0;  ///< closures so far that did not run, because of an error or the end
    Clock::duration oldest{};     ///< how long the closure has waited that waits longest
  };
  [[nodiscard]] Counts counts() const {
    const std::lock_guard lock{mutex_};
    Counts counts{waiting_.size(), in_flight_, finished_, failed_, cancelled_, {}};
    const Clock::time_point now = Clock::now();
    const auto look = [&](const std::deque<Closure>& queue) {
      if (!queue.empty()) counts.oldest = std::max(counts.oldest, now - queue.front().since);
    };
    look(waiting_);
    for (const auto& [worker, queue] : tagged_) {
      counts.waiting += queue.size();
      look(queue);
    }
    return counts;
  }

 private:
  // The caller of what follows holds `mutex_`.

  /// Returns false where the time is up and `over()` does not hold.
  template <class Over>
  [[nodiscard]] static bool wait(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, Until until,
                                 Over over) {
    if (until) return changed.wait_until(lock, *until, over);
    changed.wait(lock, over);
    return true;
  }
  [[nodiscard]] bool is_idle() const { return in_flight_ == 0 && waiting_.empty() && tagged_.empty(); }
  [[nodiscard]] std::deque<Closure>* source_for(std::size_t worker) {
    if (const auto own = tagged_.find(worker); own != tagged_.end()) return &own->second;
    return waiting_.empty() ? nullptr : &waiting_;
  }
  /// A closure no longer runs.
  void land() {
    --in_flight_;
    if (in_flight_ == 0 && (error_ || is_idle())) idle_.notify_all();
  }
  void store(std::exception_ptr error) {
    ++failed_;
    if (error_) return;
    error_ = std::move(error);
    cancel_waiting();
    room_.notify_all();
    idle_.notify_all();
  }
  void cancel_waiting() {
    for (const Closure& closure : waiting_) cancel(closure);
    waiting_.clear();
    for (const auto& [worker, queue] : tagged_)
      for (const Closure& closure : queue) cancel(closure);
    tagged_.clear();
  }
  void cancel(const Closure& closure) {
    ++cancelled_;
    closure.result->fail(
        RemoteState::cancelled,
        std::make_exception_ptr(Cancelled("A scheduled function was cancelled",
                                          closed_ ? "its coordinator has ended" : "another one failed before it ran")));
  }
  /// Throws the stored error once nothing runs, and forgets it.
  void throw_error(std::unique_lock<std::mutex>& lock, Until until) {
    if (!wait(idle_, lock, until, [&] { return !error_ || in_flight_ == 0; })) throw_late();
    if (!error_) return;
    const std::exception_ptr error = std::exchange(error_, nullptr);
    lock.unlock();
    std::rethrow_exception(error);
  }
  [[noreturn]] void throw_late() const {
    throw DeadlineExceeded("The scheduled functions have not ended in time",
                           text(waiting_.size(), " wait for a worker, and ", in_flight_, " run"),
                           "Wait for longer, or see what the workers do");
  }

  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable work_;  ///< for threads of workers
  std::condition_variable room_;  ///< for those that put
  std::condition_variable idle_;  ///< for those that wait until nothing runs
  std::deque<Closure> waiting_;
  std::map<std::size_t, std::deque<Closure>> tagged_;  ///< by worker; none is empty
  std::size_t in_flight_ = 0;
  std::exception_ptr error_;
  bool closed_ = false;
  std::uint64_t finished_ = 0;
  std::uint64_t failed_ = 0;
  std::uint64_t cancelled_ = 0;
};

}  // namespace dist
