#pragma once

#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <dist/comm/collective_call.hpp>
#include <dist/comm/health/end_process.hpp>
#include <dist/comm/health/peer_health.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/kept_function.hpp>
#include <dist/core/threads.hpp>
#include <dist/device/service_thread.hpp>
#include <dist/device/slow_wait.hpp>

namespace dist {

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
  /// Throws OutOfMemory when the system gives no thread.
  explicit Watchdog(PeerHealth& health, std::chrono::nanoseconds deadline,
                    std::chrono::nanoseconds grace = std::chrono::seconds{1},
                    detail::KeptFunction<void> before_end = {})
      : health_(health), deadline_(deadline), grace_(grace), before_end_(std::move(before_end)) {}
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog() {
    {
      const std::lock_guard lock{mutex_};
      stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

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
  using Clock = std::chrono::steady_clock;

  void watch() {
    std::uint64_t seen = 0;  // the guarded call at the last look
    Clock::time_point since;
    bool lost = false;
    Clock::time_point lost_since;
    std::optional<SlowWait> slow;
    std::unique_lock lock{mutex_};
    while (!wake_.wait_for(lock, std::chrono::milliseconds{100}, [&] { return stop_; })) {
      const std::uint64_t guarded = guarded_.load(std::memory_order_acquire);
      const Clock::time_point now = Clock::now();
      if (guarded != seen) {
        seen = guarded;
        since = now;
        lost = false;
        slow.reset();
      }
      if (guarded == 0 || now == since) continue;
      if (!slow) note(guarded, slow.emplace());
      if (!lost && knows_of_a_loss()) {
        lost = true;
        lost_since = now;
      }
      if (lost && now - lost_since >= grace_)
        end(guarded, exit_lost);
      else if (deadline_.count() != 0 && now - since >= deadline_)
        end(guarded, exit_late);
    }
  }

  /// Nobody knows for whom a call of MPI waits. It is described while it stays, as at its end.
  void note(std::uint64_t guarded, SlowWait& slow) {
    is_ending_.store(true);
    if (guarded_.load() == guarded)
      slow.note([&] { return text("for others in ", describe(*call_.load(std::memory_order_relaxed))); });
    is_ending_.store(false);
  }

  [[nodiscard]] bool knows_of_a_loss() {
    try {
      return health_.find_lost().has_value();
    } catch (const std::exception&) {
      return false;  // a lifeline that cannot be read is reported by callers of `look`
    }
  }

  /// Ends the process, unless the guarded call has ended in this moment.
  void end(std::uint64_t guarded, int status) {
    is_ending_.store(true);
    if (guarded_.load() != guarded) {
      is_ending_.store(false);
      return;
    }
    const std::string call = describe(*call_.load(std::memory_order_relaxed));
    try {
      if (status == exit_lost) health_.look();
      const std::string stopped = health_.stopped();
      throw DeadlineExceeded(text("A call did not end in time: ", call),
                             text("it has waited ", static_cast<double>(deadline_.count()) * 1e-9, " s for others",
                                  stopped.empty() ? "" : text("; a signal has stopped ", stopped)),
                             stopped.empty() ? "Find out what they wait for, or give the strategy a longer timeout"
                                             : "Continue what is stopped (kill -CONT), or start all workers again");
    } catch (const Error& error) {
      detail::end_process(call, error, status, [&] {
        if (before_end_) before_end_();
      });
    }
  }

  PeerHealth& health_;
  std::chrono::nanoseconds deadline_;
  std::chrono::nanoseconds grace_;
  detail::KeptFunction<void> before_end_;
  std::uint64_t calls_ = 0;
  alignas(cache_line) std::atomic<std::uint64_t> guarded_{0};  // the number of the call that is guarded now, or 0
  std::atomic<const CollectiveCall*> call_{nullptr};
  std::atomic<bool> is_ending_{false};
  alignas(cache_line) std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_ = detail::start_service_thread("the watchdog of collectives", [this] { watch(); });  // last
};

}  // namespace dist
