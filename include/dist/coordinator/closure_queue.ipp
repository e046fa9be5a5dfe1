#pragma once

#include <utility>

#include <dist/coordinator/closure_queue.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/device/wait.hpp>

namespace dist {

template <class Over>
bool ClosureQueue::wait(detail::ConditionVariable& changed, std::unique_lock<std::mutex>& lock, Until until,
                        Over over) {
  if (until) return changed.wait_until(lock, *until, over);
  changed.wait(lock, over);
  return true;
}

DIST_INLINE ClosureQueue::ClosureQueue(std::size_t capacity) : capacity_(capacity) {
  if (capacity == 0)
    throw InvalidArgument("A queue of scheduled functions has no room", "its capacity is 0",
                          "Give it room for at least one function");
}
DIST_INLINE void ClosureQueue::put(Closure closure, Until until) {
  std::unique_lock lock{mutex_};
  const auto has_room = [&] { return closed_ || closure.worker || waiting_.size() < capacity_; };
  throw_error(lock, until);
  while (!has_room()) {
    if (!wait(room_, lock, until, [&] { return error_ || has_room(); }))
      throw DeadlineExceeded("A function was not scheduled in time",
                             concat(waiting_.size(), " others wait for a worker, and ", in_flight_, " run"),
                             "Call join more often, add workers, or wait longer");
    throw_error(lock, until);
  }
  if (closed_) throw Cancelled("A function was not scheduled", "its coordinator has ended");
  closure.since = Clock::now();
  if (closure.worker) {
    tagged_[*closure.worker].push_back(std::move(closure));
    tell_workers();  // notify all, because only one worker may take it
  } else {
    waiting_.push_back(std::move(closure));
    told_.fetch_add(1, std::memory_order_release);
    work_.notify_one();
  }
}
DIST_INLINE bool ClosureQueue::wait_until_idle(Until until) {
  std::unique_lock lock{mutex_};
  if (!wait(idle_, lock, until, [&] { return is_idle() || (error_ && in_flight_ == 0); })) return false;
  throw_error(lock, until);
  return true;
}
DIST_INLINE void ClosureQueue::join(Until until) {
  if (wait_until_idle(until)) return;
  const std::lock_guard lock{mutex_};
  throw_late();
}
DIST_INLINE bool ClosureQueue::done(Until until) {
  std::unique_lock lock{mutex_};
  throw_error(lock, until);
  return is_idle();
}
DIST_INLINE std::optional<Closure> ClosureQueue::take(std::size_t worker, const std::atomic<bool>* errand,
                                                      Until until) {
  std::unique_lock lock{mutex_};
  const auto must_go = [&] { return closed_ || (errand != nullptr && *errand); };
  std::deque<Closure>* from = nullptr;
  const auto may_go = [&] { return must_go() || (from = source_for(worker)) != nullptr; };
  if (!may_go()) {
    const std::uint64_t before = told_.load(std::memory_order_acquire);
    lock.unlock();
    detail::look_within(detail::SpinBudget::of_a_wake(),
                        [&] { return told_.load(std::memory_order_acquire) != before; });
    lock.lock();
  }
  if (!wait(work_, lock, until, may_go) || must_go()) return std::nullopt;
  std::optional<Closure> closure{std::move(from->front())};
  from->pop_front();
  if (from == &waiting_)
    room_.notify_one();
  else if (from->empty())
    tagged_.erase(worker);
  ++in_flight_;
  ++closure->attempts;
  closure->round = rounds_;
  return closure;
}
DIST_INLINE void ClosureQueue::wake() {
  const std::lock_guard lock{mutex_};
  tell_workers();
}
DIST_INLINE void ClosureQueue::finish(const Closure& closure, std::vector<std::byte> bytes) {
  const std::lock_guard lock{mutex_};
  closure.result->finish(std::move(bytes));
  ++finished_;
  land();
}
[[gnu::cold]] DIST_INLINE void ClosureQueue::fail(const Closure& closure, std::exception_ptr error) {
  std::uint64_t round = 0;
  {
    const std::lock_guard lock{mutex_};
    closure.result->fail(RemoteState::failed, error);
    store(std::move(error));
    land();
    round = rounds_;
  }
  ask_to_stop(round);
}
[[gnu::cold]] DIST_INLINE void ClosureQueue::cancel_stopped(const Closure& closure) {
  const std::lock_guard lock{mutex_};
  cancel(closure, "another one failed while it ran");
  land();
}
[[gnu::cold]] DIST_INLINE void ClosureQueue::put_back(Closure closure) {
  const std::lock_guard lock{mutex_};
  if (error_ || closed_) {
    cancel(closure, reason_to_cancel());
  } else {
    closure.since = Clock::now();
    std::deque<Closure>& to = closure.worker ? tagged_[*closure.worker] : waiting_;
    to.push_front(std::move(closure));
    tell_workers();
  }
  land();
}
[[gnu::cold]] DIST_INLINE void ClosureQueue::abort(const Closure& closure) {
  const std::lock_guard lock{mutex_};
  abort_result(*closure.result);
  land();
}
[[gnu::cold]] DIST_INLINE void ClosureQueue::abort_result(detail::RemoteResult& result) {
  result.fail(RemoteState::aborted, std::make_exception_ptr(Cancelled("A scheduled function was aborted",
                                                                      "its coordinator ended while a worker ran it")));
}
[[gnu::cold]] DIST_INLINE void ClosureQueue::fail(std::exception_ptr error) {
  std::uint64_t round = 0;
  {
    const std::lock_guard lock{mutex_};
    store(std::move(error));
    round = rounds_;
  }
  ask_to_stop(round);
}
DIST_INLINE void ClosureQueue::set_on_error(detail::UniqueFunction<void, std::uint64_t> stop) {
  const std::lock_guard lock{on_error_mutex_};
  on_error_ = std::move(stop);
}
[[gnu::cold]] DIST_INLINE void ClosureQueue::ask_to_stop(std::uint64_t round) {
  const std::lock_guard lock{on_error_mutex_};
  if (on_error_) on_error_(round);
}
DIST_INLINE void ClosureQueue::close() {
  const std::lock_guard lock{mutex_};
  closed_ = true;
  cancel_waiting();
  tell_workers();
  room_.notify_all();
  idle_.notify_all();
}
DIST_INLINE ClosureQueue::Counts ClosureQueue::counts() const {
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
DIST_INLINE void ClosureQueue::tell_workers() {
  told_.fetch_add(1, std::memory_order_release);
  work_.notify_all();
}
DIST_INLINE bool ClosureQueue::is_idle() const { return in_flight_ == 0 && waiting_.empty() && tagged_.empty(); }
DIST_INLINE std::deque<Closure>* ClosureQueue::source_for(std::size_t worker) {
  if (const auto own = tagged_.find(worker); own != tagged_.end()) return &own->second;
  return waiting_.empty() ? nullptr : &waiting_;
}
DIST_INLINE void ClosureQueue::land() {
  --in_flight_;
  if (in_flight_ == 0 && (error_ || is_idle())) idle_.notify_all();
}
[[gnu::cold]] DIST_INLINE void ClosureQueue::store(std::exception_ptr error) {
  ++failed_;
  if (error_) return;
  error_ = std::move(error);
  ++rounds_;
  cancel_waiting();
  room_.notify_all();
  idle_.notify_all();
}
[[gnu::cold]] DIST_INLINE void ClosureQueue::cancel_waiting() {
  const auto cancel_all = [&](std::deque<Closure>& queue) {
    for (const Closure& closure : queue) cancel(closure, reason_to_cancel());
    queue.clear();
  };
  cancel_all(waiting_);
  for (auto& [worker, queue] : tagged_) cancel_all(queue);
  tagged_.clear();
}
DIST_INLINE std::string_view ClosureQueue::reason_to_cancel() const {
  return closed_ ? "its coordinator has ended" : "another one failed before it ran";
}
[[gnu::cold]] DIST_INLINE void ClosureQueue::cancel(const Closure& closure, std::string_view because) {
  ++cancelled_;
  closure.result->fail(RemoteState::cancelled,
                       std::make_exception_ptr(Cancelled("A scheduled function was cancelled", because)));
}
DIST_INLINE void ClosureQueue::throw_error(std::unique_lock<std::mutex>& lock, Until until) {
  if (!wait(idle_, lock, until, [&] { return !error_ || in_flight_ == 0; })) throw_late();
  if (!error_) return;
  const std::exception_ptr error = std::exchange(error_, nullptr);
  lock.unlock();
  std::rethrow_exception(error);
}
[[gnu::cold]] DIST_INLINE void ClosureQueue::throw_late() const {
  throw DeadlineExceeded("The scheduled functions have not ended in time",
                         concat(waiting_.size(), " wait for a worker, and ", in_flight_, " run"),
                         "Wait longer, or see what the workers do");
}

}  // namespace dist
