/// Lines on stderr for what is allowed and seldom meant. Every line begins with "dist: "; DIST_WARNINGS=0 in the
/// environment silences them all.
#pragma once

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace dist::detail {

/// Whether the environment leaves warnings on. Nothing may change it at the same time (getenv).
[[nodiscard]] inline bool warnings_are_wanted() noexcept {
  const char* const chosen = std::getenv("DIST_WARNINGS");
  return chosen == nullptr || std::string_view{chosen} != "0";
}

/// One kind of warning: an object that lives as long as the process, which gives it once however often it is due.
class Warning {
 public:
  /// Writes "dist: ", `sentence` and the end of the line, the first time. Any thread.
  void give(std::string_view sentence) noexcept {
    if (given_.exchange(true, std::memory_order_relaxed) || !warnings_are_wanted()) return;
    std::fprintf(stderr, "dist: %.*s\n", static_cast<int>(sentence.size()), sentence.data());
  }
  /// Whether it was due before: it is not worth composing again.
  [[nodiscard]] bool was_given() const noexcept { return given_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> given_{false};
};

}  // namespace dist::detail
