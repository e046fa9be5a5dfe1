/// Lines on stderr, each of which begins with "dist: ". Warnings are about what is allowed and seldom meant; DIST_WARNINGS=0
/// in the environment silences them all.
#pragma once

#include <unistd.h>

#include <atomic>
#include <string>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/text.hpp>

namespace dist {

/// Prints one line on the standard error: "dist: <words>". It is written at once and in one piece, so that lines of
/// several processes do not mix.
inline void log_line(std::string_view words) {
  const std::string line = concat("dist: ", printable(words, 8000, "\n\t"), '\n');
  static_cast<void>(!::write(STDERR_FILENO, line.data(), line.size()));
}

}  // namespace dist

namespace dist::detail {

/// Whether the environment leaves warnings on. Nothing may change it at the same time (getenv).
[[nodiscard]] bool warnings_are_wanted() noexcept;

/// One kind of warning: an object that lives as long as the process, which gives it once however often it is due.
class Warning {
 public:
  /// Writes "dist: ", `sentence` and the end of the line, the first time. Thread-safe.
  void emit(std::string_view sentence) noexcept;
  /// Whether it was due before: it is not worth composing again.
  [[nodiscard]] bool was_given() const noexcept { return given_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> given_{false};
};

}  // namespace dist::detail

#ifndef DIST_COMPILED
#include <dist/core/log.ipp>
#endif
