#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/device/wait.hpp>

namespace dist {

namespace detail {

/// One wait: it is there while `size` is not 0.
struct NotedWait {
  std::atomic<bool> taken{false};
  std::atomic<std::size_t> size{0};
  std::atomic<std::int64_t> since{0};
  std::array<char, 400> words{};
};

/// What the threads of this process wait for, where a signal handler can read it: no locks, no memory that moves.
class WaitBoard {
 public:
  static constexpr std::size_t places = 64;

  /// A free place, or `places` where there is none.
  [[nodiscard]] static std::size_t claim() noexcept;
  static void write(std::size_t place, std::string_view words, std::int64_t since) noexcept;
  static void release(std::size_t place) noexcept;
  /// What lines call this process.
  static void name_process(std::string_view name) noexcept;

  /// Writes a line for each wait to the standard error. May be called in a signal handler.
  static void print() noexcept;

 private:
  class Line;

  inline static std::array<NotedWait, places> entries_{};
  inline static std::array<char, 256> name_{"this process"};
  inline static std::atomic<std::size_t> name_size_{12};
};

}  // namespace detail

/// A wait that has become slow, so that `kill -USR1` can ask the process what it waits for. Loops that wait for others
/// call `note` where they look about every millisecond whether there is still hope. The first tenth of a second costs no
/// more than a look at the clock: nobody asks about it, and a text takes memory.
class SlowWait {
 public:
  /// A wait is worth a text after so many nanoseconds.
  explicit SlowWait(std::int64_t quiet = 100'000'000) noexcept : outer_(innermost_), quiet_(quiet) {
    innermost_ = this;
  }
  SlowWait(const SlowWait&) = delete;
  SlowWait& operator=(const SlowWait&) = delete;
  ~SlowWait() {
    innermost_ = outer_;
    if (place_ < detail::WaitBoard::places) detail::WaitBoard::release(place_);
  }

  /// `describe()` is a text such as "for worker 1 (host east) in all_reduce(sum) of 4 f32"; asked for when the wait is
  /// worth it, and about every second, because which peer is missing may change.
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

  /// The same where nobody else says what this wait is for: it never takes the place of another text.
  template <class Describe>
  void note_otherwise(Describe&& describe) {
    const std::int64_t now = detail::monotonic_nanoseconds();
    if (since_ == 0) since_ = now;
    if (noted_ == 0 && now - since_ >= 2 * quiet_) note(describe);
  }

  /// The same for the innermost wait of this thread, where the loop and what it looks for are written apart. Waits of a
  /// thread end in the reverse order of their beginning.
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

/// As long as it lives, a signal makes the process print what it waits for, for whom, and since when: SIGUSR1, or the
/// signal with the number DIST_REPORT_SIGNAL, 0 for none. A program that handles or ignores the signal itself keeps
/// doing so: only a signal that would end the process is taken.
class ReportSignal {
 public:
  ReportSignal();
  ReportSignal(const ReportSignal&) = delete;
  ReportSignal& operator=(const ReportSignal&) = delete;
  /// The signal ends the process again, unless the program has taken it over meanwhile.
  ~ReportSignal();

  /// The process answers from now on to its end.
  static void answer_to_the_end();

  /// What the lines call this process: "worker 1 on host east".
  static void name_process(std::string_view name) noexcept;

 private:
  static void on_signal(int) noexcept;

  int signal_ = 0;
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/device/slow_wait.ipp>
#endif
