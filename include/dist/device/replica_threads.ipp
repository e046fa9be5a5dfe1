#pragma once

#include <sched.h>

#include <utility>

#include <dist/core/algorithms.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/error.hpp>
#include <dist/core/thread_name.hpp>
#include <dist/device/affinity.hpp>
#include <dist/device/replica_threads.hpp>

namespace dist {

DIST_INLINE RunStatus::RunStatus(std::size_t replicas)
    : replicas_(replicas), in_sync_(replicas), returned_(new Flag[replicas]) {}

DIST_COLD void RunStatus::blame(std::size_t replica, const std::exception_ptr& failure) const {
  const std::lock_guard lock{blaming_};
  blamed_.emplace_back(replica, failure);
}

DIST_COLD std::size_t RunStatus::culprit(std::size_t replica, const std::exception_ptr& failure) const {
  const std::lock_guard lock{blaming_};
  for (const auto& [origin, blamed] : blamed_)
    if (blamed == failure) return origin;
  return replica;
}

DIST_INLINE ReplicaThreads::ReplicaThreads(std::size_t replicas, std::span<const std::size_t> processors,
                                           std::chrono::nanoseconds timeout)
    : status_(checked(replicas)), timeout_(timeout.count()), processors_(processors.begin(), processors.end()) {
  DIST_EXPECT(processors.empty() || processors.size() == replicas);
  budget_ = processors.empty() ? detail::SpinBudget::shared_core() : detail::SpinBudget::own_core();
  workers_.reserve(replicas - 1);
  try {
    for (std::size_t replica = 1; replica < replicas; ++replica)
      workers_.emplace_back(std::thread{[this, replica] {
        if (!processors_.empty()) pin_this_thread(processors_[replica]);
        work(replica);
      }});
  } catch (const std::exception& refusal) {
    stop();
    throw OutOfMemory(concat("Could not start a thread for replica ", workers_.size() + 1, " of ", replicas),
                      refusal.what(), "Use fewer replicas, or raise the limit on threads (ulimit -u)");
  }
}

DIST_INLINE ReplicaThreads::~ReplicaThreads() { stop(); }

DIST_INLINE bool ReplicaThreads::runs_here() const noexcept {
  if (!running_.load(std::memory_order_relaxed)) return false;
  const std::thread::id self = std::this_thread::get_id();
  if (in_turn_.load(std::memory_order_relaxed) == self) return true;
  for (const detail::JoinedThread& worker : workers_)
    if (worker.get_id() == self) return true;
  return false;
}

DIST_INLINE void ReplicaThreads::leave_workers_processors() const noexcept {
  if (processors_.empty()) return;
  const auto here = static_cast<std::size_t>(sched_getcpu());
  if (std::find(processors_.begin() + 1, processors_.end(), here) != processors_.end())
    move_this_thread(processors_.front());
}

DIST_COLD void ReplicaThreads::refuse_nested_run() {
  throw WrongStrategy(
      "run was called during a run of the same strategy", "a replica function called it",
      "Call run outside of replica functions and functions of merge_call; merge_call sees all replicas at once");
}

DIST_COLD void ReplicaThreads::await_turn() const {
  if (runs_here()) refuse_nested_run();
  const std::int64_t start = detail::monotonic_nanoseconds();
  const std::thread::id self = std::this_thread::get_id();
  std::thread::id none{};
  while (!in_turn_.compare_exchange_strong(none, self, std::memory_order_acquire)) {
    none = {};
    if (timeout_ > 0 && detail::monotonic_nanoseconds() - start > timeout_)
      throw DeadlineExceeded("A call waited too long for the end of another thread's call of the same strategy",
                             concat("it waited ", std::chrono::nanoseconds{timeout_}),
                             "Find out what the other call waits for, or give the strategy a longer timeout");
    std::this_thread::sleep_for(std::chrono::microseconds{50});
  }
}

DIST_INLINE std::size_t ReplicaThreads::checked(std::size_t replicas) {
  if (replicas == 0 || replicas > most_replicas)
    throw InvalidArgument("A strategy cannot have that many replicas",
                          concat(replicas, " were requested, 1 to ", most_replicas, " are possible"),
                          "Request one replica per core");
  return replicas;
}

DIST_INLINE void ReplicaThreads::stop() noexcept {
  task_.reset();
  start_workers();
  for (detail::JoinedThread& worker : workers_) worker.join();
}

DIST_INLINE void ReplicaThreads::work(std::size_t replica) noexcept {
  detail::name_this_thread(concat("dist replica ", replica));
  for (std::uint32_t seen = 0;;) {
    seen = detail::wait_for_change(start_, seen, budget_);
    if (!task_) return;
    perform(replica, *task_);
  }
}

DIST_COLD void ReplicaThreads::note_failure(std::size_t replica) noexcept {
  if (failing_.exchange(true, std::memory_order_acq_rel)) return;
  cause_ = std::current_exception();
  failed_replica_ = status_.culprit(replica, cause_);
  status_.failed_.store(true, std::memory_order_release);
}

DIST_COLD void ReplicaThreads::rethrow() {
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
    throw ReplicaError(failed, status_.in_sync(), "an object that is not a std::exception", cause);
  }
}

}  // namespace dist
