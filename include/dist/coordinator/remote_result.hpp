#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <dist/core/condition_variable.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>

namespace dist {

/// What became of a scheduled function (spec L08).
enum class RemoteState : std::uint8_t {
  not_ready,  ///< it waits for a worker, or runs
  ready,      ///< its result is here
  failed,     ///< it threw, or what it needs is lost
  cancelled,  ///< it did not run, or stopped, because another function failed, or the coordinator ended
  aborted,    ///< it began to run, and nobody knows how far it came, because the coordinator ended
};

[[nodiscard]] std::string_view to_string_view(RemoteState state);

namespace detail {

/// The result of a scheduled function, as bytes, which the closure shares with all its RemoteValues. It is at the
/// coordinator, so the worker that computed it is not needed any more. Thread-safe.
class RemoteResult {
 public:
  using Clock = std::chrono::steady_clock;

  /// The first of several outcomes counts.
  void finish(std::vector<std::byte> bytes);
  /// `state` is what a failure is called: failed, cancelled or aborted.
  void fail(RemoteState state, std::exception_ptr error);

  [[nodiscard]] RemoteState state() const noexcept { return state_.load(std::memory_order_acquire); }

  /// Waits until there is an outcome. The bytes stay as they are from then on. Throws what the function ended with, or
  /// DeadlineExceeded after `until`.
  [[nodiscard]] std::span<const std::byte> wait(std::optional<Clock::time_point> until) const;

 private:
  /// `mutex_` is held.
  void end(RemoteState state);

  mutable std::mutex mutex_;
  mutable detail::ConditionVariable changed_;
  std::atomic<RemoteState> state_{RemoteState::not_ready};
  std::vector<std::byte> bytes_;
  std::exception_ptr error_;
};

}  // namespace detail

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/coordinator/remote_result.ipp>
#endif
