#pragma once

#include <exception>
#include <mutex>
#include <optional>
#include <utility>

#include <dist/comm/health/peer_health.hpp>
#include <dist/comm/health/watchdog.hpp>
#include <dist/core/condition_variable.hpp>
#include <dist/core/config.hpp>
#include <dist/core/threads.hpp>
#include <dist/device/service_thread.hpp>
#include <dist/device/slow_wait.hpp>

namespace dist {

class Watchdog::Watch {
 public:
  Watch(Watchdog& watchdog, PeerHealth& health, std::chrono::nanoseconds deadline, std::chrono::nanoseconds grace,
        detail::UniqueFunction<void> before_end, std::string_view late_advice)
      : watchdog_(watchdog),
        health_(health),
        deadline_(deadline),
        grace_(grace),
        before_end_(std::move(before_end)),
        late_advice_(late_advice) {}
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch() {
    if (!thread_.is_here()) return;
    {
      const std::lock_guard lock{mutex_};
      stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

 private:
  using Clock = std::chrono::steady_clock;

  void watch() {
    std::uint64_t seen = 0;  // the guarded call in the last check
    Clock::time_point since;
    bool lost = false;
    Clock::time_point lost_since;
    std::optional<SlowWait> slow;
    std::unique_lock lock{mutex_};
    while (!wake_.wait_for(lock, std::chrono::milliseconds{100}, [&] { return stop_; })) {
      const std::uint64_t guarded = watchdog_.guarded_.load(std::memory_order_acquire);
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

  /// Reports a slow call; MPI does not show which member it awaits. Delays the end of the call meanwhile.
  void note(std::uint64_t guarded, SlowWait& slow) {
    watchdog_.is_ending_.store(true);
    if (watchdog_.guarded_.load() == guarded)
      slow.note([&] { return concat("for others in ", describe(*watchdog_.call_.load(std::memory_order_relaxed))); });
    watchdog_.is_ending_.store(false);
  }

  [[nodiscard]] bool knows_of_a_loss() {
    try {
      return health_.find_lost().has_value();
    } catch (const std::exception&) {
      return false;  // callers of `look` report lifelines that cannot be read
    }
  }

  /// Ends the process, unless the guarded call has just ended.
  void end(std::uint64_t guarded, int status) {
    watchdog_.is_ending_.store(true);
    if (watchdog_.guarded_.load() != guarded) {
      watchdog_.is_ending_.store(false);
      return;
    }
    const std::string call = describe(*watchdog_.call_.load(std::memory_order_relaxed));
    try {
      if (status == exit_lost) health_.look();
      const std::string stopped = health_.stopped();
      throw DeadlineExceeded(
          concat("A call did not end in time: ", call),
          concat("it has waited ", deadline_, " for others",
                 stopped.empty() ? "" : concat("; a signal has stopped ", stopped)),
          stopped.empty() ? late_advice_ : "Continue the stopped processes (kill -CONT), or start all workers again");
    } catch (const Error& error) {
      detail::end_process(call, error, status, [&] {
        if (before_end_) before_end_();
      });
    }
  }

  Watchdog& watchdog_;
  PeerHealth& health_;
  std::chrono::nanoseconds deadline_;
  std::chrono::nanoseconds grace_;
  detail::UniqueFunction<void> before_end_;
  std::string_view late_advice_;
  std::mutex mutex_;
  detail::ConditionVariable wake_;
  bool stop_ = false;
  detail::JoinedThread thread_ =
      detail::start_service_thread("the watchdog of collectives", [this] { watch(); });  // last: uses all other members
};

DIST_INLINE Watchdog::Watchdog(PeerHealth& health, std::chrono::nanoseconds deadline, std::chrono::nanoseconds grace,
                               detail::UniqueFunction<void> before_end, std::string_view late_advice)
    : watch_(std::make_unique<Watch>(*this, health, deadline, grace, std::move(before_end), late_advice)) {}

DIST_INLINE_DEFAULT Watchdog::~Watchdog() = default;

}  // namespace dist
