#pragma once

#include <concepts>

namespace dist {

/// Asynchronous work: a background collective, a request to other workers, work in a device's queue. `wait` returns
/// when the work is done, or throws its error, such as a timeout; later calls do the same at once. `is_done` returns
/// true if `wait` would not block.
///
/// The inputs and outputs must stay valid and unchanged until the work is done. Destroying the handle does not cancel
/// the work.
template <class W>
concept Future = std::movable<W> && requires(W& work, const W& seen) {
  work.wait();
  { seen.is_done() } -> std::same_as<bool>;
};

/// The result of work that finished at once.
template <class T>
struct Ready {
  T result;  ///< returned by `value()`

  constexpr void wait() const noexcept {}
  [[nodiscard]] constexpr bool is_done() const noexcept { return true; }
  [[nodiscard]] constexpr T value() const { return result; }
};
/// Deduces the type of the result.
template <class T>
Ready(T) -> Ready<T>;

}  // namespace dist
