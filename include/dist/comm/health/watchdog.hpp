#pragma once

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string_view>

#include <dist/comm/collective_call.hpp>
#include <dist/comm/health/timeout.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/functions.hpp>
#include <dist/core/light_memory.hpp>

namespace dist {

class PeerHealth;

/// Ends this process if it is stuck in a call that cannot be interrupted: a blocking call of a message-passing library
/// whose peer died or never arrives. A thread checks ten times a second. If the guarded call does not end within a
/// second of the loss of a peer, or within the deadline, the thread prints the error that `look` would throw and ends
/// the process with status `exit_lost` or `exit_late`, without destructors, which would wait, too.
class Watchdog {
 public:
  /// Exit status after the loss of a peer.
  static constexpr int exit_lost = 70;
  /// Exit status after the deadline.
  static constexpr int exit_late = detail::exit_late;

  /// `health` must outlive the watchdog. `deadline` is the limit while all peers live; 0: none. After the loss of a
  /// peer the call may take `grace` longer. `before_end` is called before the process ends. `late_advice`, which must
  /// outlive the watchdog, ends the message of a late call. Throws OutOfMemory if the system cannot create a thread.
  explicit Watchdog(
      PeerHealth& health, std::chrono::nanoseconds deadline, std::chrono::nanoseconds grace = std::chrono::seconds{1},
      detail::UniqueFunction<void> before_end = {},
      std::string_view late_advice = "Find out what they wait for, or give the strategy a longer timeout");
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();

  /// Guards a call that cannot be interrupted, by two stores. One guard at a time. Does nothing without a watchdog.
  class Guard {
   public:
    /// Starts to guard `call`, which must outlive the guard. `watchdog` may be null.
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
      // The watchdog describes the call, which must stay valid until the process ends.
      while (watchdog_->is_ending_.load()) sched_yield();
    }

   private:
    Watchdog* watchdog_;
  };

 private:
  class Watch;

  std::uint64_t calls_ = 0;
  alignas(cache_line) std::atomic<std::uint64_t> guarded_{0};  // the number of the guarded call, or 0
  std::atomic<const CollectiveCall*> call_{nullptr};
  std::atomic<bool> is_ending_{false};
  std::unique_ptr<Watch> watch_;
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/comm/health/watchdog.ipp>
#endif
