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

/// Threads for the events of a completion queue. One polls, and handles what comes itself, so that a short event takes no switch
/// of threads. The others stand by. One of them takes its place when it has been busy with one event for a millisecond, or at
/// once when it says that it will be (`step_back`).
class PollerThreads {
 public:
  explicit PollerThreads(grpc_completion_queue* queue) : poller_(queue) {}
  PollerThreads(const PollerThreads&) = delete;
  PollerThreads& operator=(const PollerThreads&) = delete;

  void start(std::size_t count, std::string_view name) {
    for (std::size_t i = 0; i < count; ++i)
      threads_.emplace_back([this, name] {
        detail::name_this_thread(name);
        while (stand_by() && poll()) continue;
      });
  }
  /// Whether there are threads.
  [[nodiscard]] bool started() const { return !threads_.empty(); }

  /// In the thread that handles an event: another one polls meanwhile.
  void step_back() {
    std::uint64_t number = event_of_this_thread();
    if (state_.compare_exchange_strong(number, nobody_polls)) changed_.notify();
  }

  /// After the queue was shut down: returns when all its events are handled.
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  /// Leaves threads alone that are in another process.
  void detach() {
    for (std::thread& thread : threads_) thread.detach();
    threads_.clear();
  }

 private:
  // What `state_` says besides the number of the event that the poller handles:
  static constexpr std::uint64_t polls = 0;
  static constexpr std::uint64_t nobody_polls = ~std::uint64_t{0};

  /// The last one that it took off a queue as its poller.
  static std::uint64_t& event_of_this_thread() {
    thread_local std::uint64_t number = polls;
    return number;
  }

  /// Returns true when this thread is to poll, and false when the queue has ended.
  bool stand_by() {
    constexpr std::int64_t look = 1'000'000, rest = 3'600'000'000'000;
    constexpr int quiet_looks = 10;
    const std::lock_guard lock{standing_by_};  // one looks, and the others wait for its place
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

  /// Returns true when another thread has to poll, and false when the queue has ended.
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
  std::atomic<bool> rests_{false};  ///< who stands by, until there is an event
  detail::EventCount changed_;
  std::mutex standing_by_;
  std::vector<std::thread> threads_;
};

}  // namespace dist::grpc
