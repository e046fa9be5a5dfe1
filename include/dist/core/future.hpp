#pragma once

#include <concepts>

namespace dist {

/// What was started and goes on while the caller does something else: a collective in the background, a question to the
/// other workers, what was put into a device's queue. `wait` returns when it is done and throws what ended it where that
/// went wrong, a deadline for instance; a later call does the same again, at once. `is_done` says whether `wait` would
/// return or throw without waiting.
///
/// What it reads and writes stays, untouched, until it is done. A handle that goes ends nothing: the work goes on.
template <class W>
concept Future = std::movable<W> && requires(W& work, const W& seen) {
  work.wait();
  { seen.is_done() } -> std::same_as<bool>;
};

/// Work that was done at once: its result.
template <class T>
struct Ready {
  T result;

  constexpr void wait() const noexcept {}
  [[nodiscard]] constexpr bool is_done() const noexcept { return true; }
  [[nodiscard]] constexpr T value() const { return result; }
};
template <class T>
Ready(T) -> Ready<T>;

}  // namespace dist
