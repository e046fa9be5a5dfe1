#pragma once

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include <dist/core/algorithms.hpp>
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
  [[nodiscard]] static std::size_t claim() noexcept {
    for (std::size_t place = 0; place < places; ++place) {
      bool free = false;
      if (entries_[place].taken.compare_exchange_strong(free, true)) return place;
    }
    return places;
  }
  static void write(std::size_t place, std::string_view words, std::int64_t since) noexcept {
    NotedWait& entry = entries_[place];
    entry.size.store(0);  // a signal that comes now sees nothing here
    const std::size_t size = std::min(words.size(), entry.words.size());
    std::memcpy(entry.words.data(), words.data(), size);
    entry.since.store(since);
    entry.size.store(size);
  }
  static void release(std::size_t place) noexcept {
    entries_[place].size.store(0);
    entries_[place].taken.store(false);
  }
  /// What lines call this process.
  static void name_process(std::string_view name) noexcept {
    const std::size_t size = std::min(name.size(), name_.size() - 1);
    std::memcpy(name_.data(), name.data(), size);
    name_size_.store(size);
  }

  /// Writes a line for each wait to the standard error. May be called in a signal handler.
  static void print() noexcept {
    const std::int64_t now = monotonic_nanoseconds();
    bool waits = false;
    for (const NotedWait& entry : entries_) {
      const std::size_t size = entry.size.load();
      if (size == 0) continue;
      waits = true;
      Line line;
      line.add(" waits ").add({entry.words.data(), size}).add(", since ");
      const auto tenths = static_cast<std::uint64_t>((now - entry.since.load()) / 100'000'000);
      line.number(tenths / 10).add(".").number(tenths % 10).add(" s").print();
    }
    if (!waits) Line{}.add(" waits for no other process or replica").print();
  }

 private:
  class Line {
   public:
    Line() {
      add("dist: ").add({name_.data(), name_size_.load()}).add(" (process ");
      number(static_cast<std::uint64_t>(getpid())).add(")");
    }
    Line& add(std::string_view words) noexcept {
      const std::size_t size = std::min(words.size(), bytes_.size() - 1 - used_);
      std::memcpy(bytes_.data() + used_, words.data(), size);
      used_ += size;
      return *this;
    }
    Line& number(std::uint64_t value) noexcept {
      std::array<char, 20> digits;
      std::size_t first = digits.size();
      do {
        digits[--first] = static_cast<char>('0' + value % 10);
        value /= 10;
      } while (value != 0);
      return add({digits.data() + first, digits.size() - first});
    }
    void print() noexcept {
      bytes_[used_++] = '\n';
      static_cast<void>(!::write(STDERR_FILENO, bytes_.data(), used_));
    }

   private:
    std::array<char, 800> bytes_;
    std::size_t used_ = 0;
  };

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
  ReportSignal() {
    const char* const chosen = std::getenv("DIST_REPORT_SIGNAL");
    const int number = chosen != nullptr ? std::atoi(chosen) : SIGUSR1;
    struct sigaction now {};
    if (number <= 0 || sigaction(number, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) != 0 ||
        now.sa_handler != SIG_DFL)
      return;
    struct sigaction report {};
    report.sa_handler = on_signal;
    report.sa_flags = SA_RESTART;
    sigemptyset(&report.sa_mask);
    if (sigaction(number, &report, nullptr) == 0) signal_ = number;
  }
  ReportSignal(const ReportSignal&) = delete;
  ReportSignal& operator=(const ReportSignal&) = delete;
  /// The signal ends the process again, unless the program has taken it over meanwhile.
  ~ReportSignal() {
    struct sigaction now {};
    if (signal_ != 0 && sigaction(signal_, nullptr, &now) == 0 && now.sa_handler == on_signal) signal(signal_, SIG_DFL);
  }

  /// For a program of one process, which answers only where DIST_REPORT_SIGNAL is given, and then to its end: nobody
  /// else takes a signal away from it.
  static void answer_where_chosen() {
    if (std::getenv("DIST_REPORT_SIGNAL") == nullptr) return;
    static const ReportSignal until_the_process_ends;
  }

  /// What the lines call this process: "worker 1 on host east".
  static void name_process(std::string_view name) noexcept { detail::WaitBoard::name_process(name); }

 private:
  static void on_signal(int) noexcept {
    const int before = errno;
    detail::WaitBoard::print();
    errno = before;
  }

  int signal_ = 0;
};

}  // namespace dist
