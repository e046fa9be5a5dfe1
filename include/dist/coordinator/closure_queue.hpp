#pragma once

#include <algorithm>
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
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/pointers.hpp>

namespace dist {

/// A scheduled function with its arguments, as it goes to a worker.
struct Closure {
  using Clock = std::chrono::steady_clock;

  std::vector<std::byte> message;
  std::shared_ptr<detail::RemoteResult> result = std::make_shared<detail::RemoteResult>();
  std::string_view function = {};          ///< what messages call it; it outlives the closure
  std::optional<std::size_t> worker = {};  ///< the only one that may run it (spec L20)
  std::size_t attempts = 0;                ///< workers that began with it
  Clock::time_point since = {};            ///< when it was put into the queue, or back there
};

/// The functions that wait for a worker, and the number of those that run: what `schedule`, `join` and `done` of a
/// coordinator and the threads of its workers share. It knows no transport.
///
/// Of several errors the first counts (spec L05). It cancels at once what waits, so that nobody waits for the results
/// of that; the next `put`, `join` or `done` waits for what still runs and throws the error, after which the queue is
/// as good as new. Of several threads that wait, one throws it.
class ClosureQueue {
 public:
  using Clock = Closure::Clock;
  /// Until when to wait; none: as long as it takes.
  using Until = std::optional<Clock::time_point>;

  /// How many closures wait at most (spec L02). Those for one worker, and those that a lost worker gives back, are not
  /// limited.
  static constexpr std::size_t default_capacity = 256 * 1024;

  explicit ClosureQueue(std::size_t capacity = default_capacity) : capacity_(capacity) {
    if (capacity == 0)
      throw InvalidArgument("A queue of scheduled functions is given no room", "its capacity is 0",
                            "Give it room for at least one function");
  }
  ClosureQueue(const ClosureQueue&) = delete;
  ClosureQueue& operator=(const ClosureQueue&) = delete;

  // ---- whoever schedules ----

  /// Takes a closure, once there is room. Throws the error of an earlier closure, DeadlineExceeded where there is no
  /// room in time, and Cancelled where the queue is closed.
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

  /// Waits until nothing waits or runs (spec L04). Throws the error of a closure, and DeadlineExceeded.
  void join(Until until = {}) {
    std::unique_lock lock{mutex_};
    throw_error(lock, until);
    while (!is_idle()) {
      if (!wait(idle_, lock, until, [&] { return error_ || is_idle(); })) throw_late();
      throw_error(lock, until);
    }
  }
  /// Whether nothing waits or runs (spec L06). Throws the error of a closure, for which it waits until nothing runs.
  [[nodiscard]] bool done(Until until = {}) {
    std::unique_lock lock{mutex_};
    throw_error(lock, until);
    return is_idle();
  }

  // ---- the threads of workers ----

  /// The next closure for a worker: one that only this worker may run, or the first of those for all. Waits for one.
  /// Nothing once the queue is closed, and after `wake` where the worker has an errand. Each closure that is taken is
  /// given to `finish`, `fail`, `abort` or `put_back` once.
  [[nodiscard]] std::optional<Closure> take(std::size_t worker, const std::atomic<bool>* errand = nullptr) {
    std::unique_lock lock{mutex_};
    const auto must_go = [&] { return closed_ || (errand != nullptr && *errand); };
    std::deque<Closure>* from = nullptr;
    work_.wait(lock, [&] { return must_go() || (from = source_for(worker)) != nullptr; });
    if (must_go()) return std::nullopt;
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
  /// Lets the workers look whether they have errands.
  void wake() {
    const std::lock_guard lock{mutex_};
    work_.notify_all();
  }

  // Who waits for a result sees the queue without the closure.

  void finish(const Closure& closure, std::vector<std::byte> bytes) {
    const std::lock_guard lock{mutex_};
    closure.result->finish(std::move(bytes));
    ++finished_;
    land();
  }
  /// The closure has failed, which ends all that was scheduled before the error is seen.
  void fail(const Closure& closure, std::exception_ptr error) {
    const std::lock_guard lock{mutex_};
    closure.result->fail(RemoteState::failed, error);
    store(std::move(error));
    land();
  }
  /// The closure runs again, before others, because its worker is lost (spec L14); or is cancelled where an error has
  /// cancelled the others.
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
  /// Nobody knows what the closure came to, as its coordinator ends.
  void abort(const Closure& closure) {
    const std::lock_guard lock{mutex_};
    closure.result->fail(RemoteState::aborted,
                         std::make_exception_ptr(Cancelled("A scheduled function was aborted",
                                                           "its coordinator ended while a worker ran it")));
    land();
  }
  /// An error of no closure, such as a worker that does not come back.
  void fail(std::exception_ptr error) {
    const std::lock_guard lock{mutex_};
    store(std::move(error));
  }

  // ---- the coordinator ----

  /// Cancels what waits; `take` returns nothing from now on, and `put` refuses.
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
    std::size_t waiting = 0;  ///< with those for one worker
    std::size_t in_flight = 0;
    std::uint64_t finished = 0;   ///< since the beginning, with a result
    std::uint64_t failed = 0;     ///< errors
    std::uint64_t cancelled = 0;  ///< closures that did not run, because of an error or the end
    Clock::duration oldest{};     ///< for how long the first that waits has done so
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
  /// What follows holds `mutex_`.

  /// False when the time is up, and `over()` does not hold.
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
  /// A closure runs no more.
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
  /// Throws the stored error, when nothing runs any more, and forgets it.
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
