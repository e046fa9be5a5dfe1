#pragma once

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <dist/core/algorithms.hpp>
#include <dist/device/slow_wait.hpp>
#include <dist/device/wait.hpp>

namespace dist {

namespace detail {

class WaitBoard::Line {
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

DIST_COLD std::size_t WaitBoard::claim() noexcept {
  for (std::size_t place = 0; place < places; ++place) {
    bool free = false;
    if (entries_[place].taken.compare_exchange_strong(free, true)) return place;
  }
  return places;
}

DIST_COLD void WaitBoard::write(std::size_t place, std::string_view words, std::int64_t since) noexcept {
  NotedWait& entry = entries_[place];
  entry.size.store(0);  // invisible to a signal handler from here
  const std::size_t size = std::min(words.size(), entry.words.size());
  std::memcpy(entry.words.data(), words.data(), size);
  entry.since.store(since);
  entry.size.store(size);
}

DIST_INLINE void WaitBoard::release(std::size_t place) noexcept {
  entries_[place].size.store(0);
  entries_[place].taken.store(false);
}

DIST_INLINE void WaitBoard::name_process(std::string_view name) noexcept {
  const std::size_t size = std::min(name.size(), name_.size() - 1);
  std::memcpy(name_.data(), name.data(), size);
  name_size_.store(size);
}

DIST_COLD void WaitBoard::print() noexcept {
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

}  // namespace detail

DIST_INLINE ReportSignal::ReportSignal() {
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

DIST_INLINE ReportSignal::~ReportSignal() {
  struct sigaction now {};
  if (signal_ != 0 && sigaction(signal_, nullptr, &now) == 0 && now.sa_handler == on_signal) signal(signal_, SIG_DFL);
}

DIST_INLINE void ReportSignal::answer_to_the_end() { static const ReportSignal until_the_process_ends; }

DIST_COLD void ReportSignal::on_signal(int) noexcept {
  const int before = errno;
  detail::WaitBoard::print();
  errno = before;
}

DIST_INLINE void ReportSignal::name_process(std::string_view name) noexcept { detail::WaitBoard::name_process(name); }

}  // namespace dist
