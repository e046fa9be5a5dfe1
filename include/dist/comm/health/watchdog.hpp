#pragma once

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include <dist/comm/collective_call.hpp>
#include <dist/comm/health/end_process.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/light_memory.hpp>

namespace dist {

class PeerHealth;

/// Ends this process when it is stuck in a call that nobody can interrupt: a blocking call of a message-passing library
/// whose peer died, or never comes. A thread looks ten times a second. When the guarded call has not ended within a
/// second of the loss of a peer, or within the deadline, the thread prints the error that `look` would have thrown and
/// ends the process with the status `exit_lost` or `exit_late`, without running destructors, which would wait too.
class Watchdog {
 public:
  static constexpr int exit_lost = 70;
  static constexpr int exit_late = detail::exit_late;

  /// `health` must outlive the watchdog. A `deadline` of 0 waits as long as it takes, for peers that live.
  /// After the loss of a peer the call may take `grace` longer. `before_end` is called before the process is ended.
  /// `late_advice`, which must outlive the watchdog, ends the message of a call that is late.
  /// Throws OutOfMemory when the system gives no thread.
  explicit Watchdog(
      PeerHealth& health, std::chrono::nanoseconds deadline, std::chrono::nanoseconds grace = std::chrono::seconds{1},
      detail::UniqueFunction<void> before_end = {},
      std::string_view late_advice = "Find out what they wait for, or give the strategy a longer timeout");
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();

  /// Stands around a call that cannot be interrupted: two stores while all goes well. One at a time. With no watchdog
  /// it does nothing.
  class Guard {
   public:
    Guard(Watchdog* watchdog, const CollectiveCall& call) noexcept : watchdog_(watchdog) {
      if (watchdog_ == nullptr) return;
      watchdog_->call_.store(&call, std::memory_order_relaxed);
      watchdog_->guarded_.store(++watchdog_->calls_, std::memory_order_release);
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    ~Guard() {
      if (watchdog_ == nullptr) return;
      watchdog_->guarded_.store(0);
      // The watchdog has decided and describes the call, which must stay until the process has ended.
      while (watchdog_->is_ending_.load()) sched_yield();
    }

   private:
    Watchdog* watchdog_;
  };

 private:
  class Watch;  // the thread and what it needs

  std::uint64_t calls_ = 0;
  alignas(cache_line) std::atomic<std::uint64_t> guarded_{0};  // the number of the call that is guarded now, or 0
  std::atomic<const CollectiveCall*> call_{nullptr};
  std::atomic<bool> is_ending_{false};
  std::unique_ptr<Watch> watch_;
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/comm/health/watchdog.ipp>
#endif
