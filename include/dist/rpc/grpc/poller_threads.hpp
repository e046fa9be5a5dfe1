#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include <dist/core/thread_name.hpp>
#include <dist/device/wait.hpp>
#include <dist/rpc/grpc/api.hpp>

namespace dist::grpc {

/// Threads for the events of a completion queue. One polls and handles events itself, so that short events need no
/// thread switch. Another takes over after a millisecond of one event, or at once after `step_back`.
class PollerThreads {
 public:
  /// Handles the events of `queue`, which must outlive it.
  explicit PollerThreads(grpc_completion_queue* queue) : poller_(queue) {}
  PollerThreads(const PollerThreads&) = delete;
  PollerThreads& operator=(const PollerThreads&) = delete;

  /// Starts `count` threads with this name.
  void start(std::size_t count, std::string_view name) {
    for (std::size_t i = 0; i < count; ++i)
      threads_.emplace_back([this, name] {
        detail::name_this_thread(name);
        while (stand_by() && poll()) continue;
      });
  }
  /// True between `start` and `join` or `detach`.
  [[nodiscard]] bool started() const { return !threads_.empty(); }

  /// Lets another thread poll. Called in the thread that handles an event.
  void step_back() {
    std::uint64_t number = event_of_this_thread();
    if (state_.compare_exchange_strong(number, nobody_polls)) changed_.notify();
  }

  /// Waits until all events are handled, after the shutdown of the queue.
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  /// Detaches the threads after a fork, because they exist only in the parent.
  void detach() {
    for (std::thread& thread : threads_) thread.detach();
    threads_.clear();
  }

 private:
  // Values of `state_`, in addition to the number of the event that the poller handles:
  static constexpr std::uint64_t polls = 0;
  static constexpr std::uint64_t nobody_polls = ~std::uint64_t{0};

  /// The last event that this thread took from a queue.
  static std::uint64_t& event_of_this_thread() {
    thread_local std::uint64_t number = polls;
    return number;
  }

  /// Returns true when this thread must poll, and false when the queue has shut down.
  bool stand_by() {
    constexpr std::int64_t look = 1'000'000, rest = 3'600'000'000'000;
    constexpr int quiet_looks = 10;
    const std::lock_guard lock{standing_by_};  // one thread watches, the others wait to replace it
    std::uint64_t seen = polls, events = 0;
    std::int64_t since = 0;
    for (int quiet = 0; !ended_;) {
      std::uint64_t now = state_;
      const bool takes_long = now != polls && now == seen && detail::monotonic_nanoseconds() - since >= look;
      if (now == nobody_polls || takes_long) {
        if (state_.compare_exchange_strong(now, polls)) return true;
        continue;
      }
      if (now != seen) since = detail::monotonic_nanoseconds();
      seen = now;
      quiet = now == polls && events_ == events ? quiet + 1 : 0;
      events = events_;
      if (quiet < quiet_looks) {
        changed_.wait([&] { return ended_ || state_ == nobody_polls; }, look);
      } else {
        rests_ = true;
        changed_.wait([&] { return ended_ || state_ != polls; }, rest);
        rests_ = false;
      }
    }
    return false;
  }

  /// Returns true when another thread has taken over, and false when the queue has shut down.
  bool poll() {
    for (;;) {
      const grpc_event event = poller_.next(gpr_inf_future(GPR_CLOCK_REALTIME));
      if (event.type == GRPC_QUEUE_SHUTDOWN) {
        ended_ = true;
        changed_.notify();
        return false;
      }
      std::uint64_t number = ++events_;
      event_of_this_thread() = number;
      state_ = number;
      changed_.notify([&] { return rests_.load(); });
      Tag::done(event);
      if (!state_.compare_exchange_strong(number, polls)) return true;
    }
  }

  Poller poller_;
  std::atomic<std::uint64_t> state_{nobody_polls};
  std::atomic<std::uint64_t> events_{0};
  std::atomic<bool> ended_{false};
  std::atomic<bool> rests_{false};  ///< the watching thread sleeps until the next event
  detail::EventCount changed_;
  std::mutex standing_by_;
  std::vector<std::thread> threads_;
};

}  // namespace dist::grpc
