/// Lines on stderr for what is allowed and seldom meant. Every line begins with "dist: "; DIST_WARNINGS=0 in the
/// environment silences them all.
#pragma once

#include <atomic>
#include <string_view>

#include <dist/core/config.hpp>

namespace dist::detail {

/// Whether the environment leaves warnings on. Nothing may change it at the same time (getenv).
[[nodiscard]] bool warnings_are_wanted() noexcept;

/// One kind of warning: an object that lives as long as the process, which gives it once however often it is due.
class Warning {
 public:
  /// Writes "dist: ", `sentence` and the end of the line, the first time. Thread-safe.
  void give(std::string_view sentence) noexcept;
  /// Whether it was due before: it is not worth composing again.
  [[nodiscard]] bool was_given() const noexcept { return given_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> given_{false};
};

}  // namespace dist::detail

#ifndef DIST_COMPILED
#include <dist/core/warning.ipp>
#endif
