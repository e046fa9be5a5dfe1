/// Messages on stderr, each with the prefix "dist: ". Warnings report usage that is allowed but rarely intended;
/// DIST_WARNINGS=0 in the environment disables all of them.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <dist/core/config.hpp>
#include <dist/core/text.hpp>

namespace dist {

/// Prints the line "dist: <words>" on stderr with a single write, so that lines of several processes do not mix.
inline void log_line(std::string_view words) {
  const std::string line = concat("dist: ", printable(words, 8000, "\n\t"), '\n');
  static_cast<void>(!::write(STDERR_FILENO, line.data(), line.size()));
}

}  // namespace dist

namespace dist::detail {

/// True unless the environment disables warnings. Calls getenv: the environment must not change concurrently.
[[nodiscard]] inline bool warnings_are_wanted() noexcept {
  const char* const chosen = std::getenv("DIST_WARNINGS");
  return chosen == nullptr || std::string_view{chosen} != "0";
}

/// A warning that is printed at most once per process. The object must have static storage duration.
class Warning {
 public:
  /// Prints "dist: " and `sentence` on the first call only. Thread-safe.
  void emit(std::string_view sentence) noexcept {
    if (given_.exchange(true, std::memory_order_relaxed) || !warnings_are_wanted()) return;
    std::fprintf(stderr, "dist: %.*s\n", static_cast<int>(sentence.size()), sentence.data());
  }
  /// True if the warning was already due, so that callers need not format it again.
  [[nodiscard]] bool was_given() const noexcept { return given_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> given_{false};
};

}  // namespace dist::detail
