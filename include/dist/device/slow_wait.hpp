#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/device/wait.hpp>

namespace dist {

namespace detail {

/// A registered wait, valid if `size` is not 0.
struct NotedWait {
  std::atomic<bool> taken{false};
  std::atomic<std::size_t> size{0};
  std::atomic<std::int64_t> since{0};
  std::array<char, 400> words{};
};

/// The current waits of this process, readable in a signal handler: without locks or reallocation.
class WaitBoard {
 public:
  static constexpr std::size_t places = 64;

  /// Returns a free place, or `places` if all are taken.
  [[nodiscard]] static std::size_t claim() noexcept;
  static void write(std::size_t place, std::string_view words, std::int64_t since) noexcept;
  static void release(std::size_t place) noexcept;
  /// Sets the name of this process for the output.
  static void name_process(std::string_view name) noexcept;

  /// Prints a line for each wait to stderr. Async-signal-safe.
  static void print() noexcept;

 private:
  class Line;

  inline static std::array<NotedWait, places> entries_{};
  inline static std::array<char, 256> name_{"this process"};
  inline static std::atomic<std::size_t> name_size_{12};
};

}  // namespace detail

/// A wait that `kill -USR1` reports once it has become slow. Waiting loops call `note` about every millisecond. The
/// first tenth of a second only costs a clock read, without a description.
class SlowWait {
 public:
  /// Waits shorter than `quiet` nanoseconds are not reported.
  explicit SlowWait(std::int64_t quiet = 100'000'000) noexcept : outer_(innermost_), quiet_(quiet) {
    innermost_ = this;
  }
  SlowWait(const SlowWait&) = delete;
  SlowWait& operator=(const SlowWait&) = delete;
  ~SlowWait() {
    innermost_ = outer_;
    if (place_ < detail::WaitBoard::places) detail::WaitBoard::release(place_);
  }

  /// Registers the wait with the text of `describe()`, such as "for worker 1 (host east) in all_reduce(sum) of 4 f32".
  /// Calls `describe` only if the wait is slow, and then about once per second, as the missing peer may change.
  template <class Describe>
  void note(Describe&& describe) {
    constexpr std::int64_t second = 1'000'000'000;
    const std::int64_t now = detail::monotonic_nanoseconds();
    if (since_ == 0) since_ = now;
    if (now - since_ < quiet_) return;
    if (noted_ == 0)
      place_ = detail::WaitBoard::claim();
    else if (now - noted_ < second)
      return;
    noted_ = now;
    if (place_ < detail::WaitBoard::places) detail::WaitBoard::write(place_, std::string_view{describe()}, since_);
  }

  /// Registers a default description after twice the time of `note`; never replaces another one.
  template <class Describe>
  void note_otherwise(Describe&& describe) {
    const std::int64_t now = detail::monotonic_nanoseconds();
    if (since_ == 0) since_ = now;
    if (noted_ == 0 && now - since_ >= 2 * quiet_) note(describe);
  }

  /// Registers the innermost wait of this thread, for loops whose condition is in another function. Waits of a thread
  /// are nested.
  template <class Describe>
  static void note_innermost(Describe&& describe) {
    if (innermost_ != nullptr) innermost_->note(describe);
  }

 private:
  inline static thread_local SlowWait* innermost_ = nullptr;

  SlowWait* outer_;
  std::int64_t quiet_;
  std::size_t place_ = detail::WaitBoard::places;
  std::int64_t since_ = 0;
  std::int64_t noted_ = 0;
};

/// Prints the current waits of this process, with peers and durations, on a signal during the lifetime of this object:
/// SIGUSR1, or the signal number DIST_REPORT_SIGNAL (0: none). Only replaces the default action, which would terminate
/// the process; keeps handlers of the program.
class ReportSignal {
 public:
  ReportSignal();
  ReportSignal(const ReportSignal&) = delete;
  ReportSignal& operator=(const ReportSignal&) = delete;
  /// Restores the default action, unless the program has installed a handler meanwhile.
  ~ReportSignal();

  /// Handles the signal until the process exits.
  static void answer_to_the_end();

  /// Sets the name of this process for the output: "worker 1 on host east".
  static void name_process(std::string_view name) noexcept;

 private:
  static void on_signal(int) noexcept;

  int signal_ = 0;
};

/// The default timeout for waits of the host for a device.
inline constexpr std::chrono::nanoseconds longest_device_wait = std::chrono::minutes{10};

namespace detail {

/// Polls `is_over()`, a non-blocking query of a device's runtime, with `pause()` in between, of at most about a
/// millisecond. Throws DeadlineExceeded after `timeout` (0: never). `describe()` returns the name of the work: "queue 1
/// of GPU 0"; `look` is a suggestion: "Check with nvidia-smi whether the GPU is lost".
template <class IsOver, class Pause, class Describe>
void await(IsOver&& is_over, Pause&& pause, Describe&& describe, std::chrono::nanoseconds timeout,
           std::string_view look) {
  SlowWait slow;
  for (const std::int64_t begin = monotonic_nanoseconds(); !is_over(); pause()) {
    const std::int64_t waited = monotonic_nanoseconds() - begin;
    if (timeout.count() != 0 && waited >= timeout.count())
      throw DeadlineExceeded(concat("Work was not done in time: ", describe()),
                             concat("the host waited ", std::chrono::nanoseconds{waited}, " for it"),
                             concat(look, ", or set a longer timeout"));
    slow.note([&] { return concat("for ", describe()); });
  }
}

}  // namespace detail
}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/device/slow_wait.ipp>
#endif
