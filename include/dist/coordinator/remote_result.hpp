#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>

namespace dist {

/// What became of a scheduled function (spec L08).
enum class RemoteState : std::uint8_t {
  not_ready,  ///< it waits for a worker, or runs
  ready,      ///< its result is here
  failed,     ///< it threw, or what it needs is lost
  cancelled,  ///< it did not run, because another function failed before, or the coordinator ended
  aborted,    ///< it began to run, and nobody knows how far it came, because the coordinator ended
};

[[nodiscard]] inline std::string_view to_string_view(RemoteState state) {
  constexpr std::string_view names[] = {"not ready", "ready", "failed", "cancelled", "aborted"};
  return names[static_cast<std::size_t>(state)];
}

namespace detail {

/// The result of a scheduled function, as bytes, which the closure shares with all its RemoteValues. It is at the
/// coordinator, so the worker that computed it is not needed any more. Any thread may call.
class RemoteResult {
 public:
  using Clock = std::chrono::steady_clock;

  /// The first of several outcomes counts.
  void finish(std::vector<std::byte> bytes) {
    const std::lock_guard lock{mutex_};
    if (state_ != RemoteState::not_ready) return;
    bytes_ = std::move(bytes);
    end(RemoteState::ready);
  }
  /// `state` is what a failure is called: failed, cancelled or aborted.
  void fail(RemoteState state, std::exception_ptr error) {
    const std::lock_guard lock{mutex_};
    if (state_ != RemoteState::not_ready) return;
    error_ = std::move(error);
    end(state);
  }

  [[nodiscard]] RemoteState state() const {
    const std::lock_guard lock{mutex_};
    return state_;
  }

  /// Waits until there is an outcome. The bytes stay as they are from then on. Throws what the function ended with, or
  /// DeadlineExceeded after `until`.
  [[nodiscard]] std::span<const std::byte> wait(std::optional<Clock::time_point> until) const {
    std::unique_lock lock{mutex_};
    const auto ended = [&] { return state_ != RemoteState::not_ready; };
    if (!until) {
      changed_.wait(lock, ended);
    } else if (!changed_.wait_until(lock, *until, ended)) {
      throw DeadlineExceeded("The result of a scheduled function is not here in time",
                             "the function waits for a worker, or still runs", "Give fetch a longer timeout");
    }
    if (error_) std::rethrow_exception(error_);
    return bytes_;
  }

 private:
  /// `mutex_` is held.
  void end(RemoteState state) {
    state_ = state;
    changed_.notify_all();
  }

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  RemoteState state_ = RemoteState::not_ready;
  std::vector<std::byte> bytes_;
  std::exception_ptr error_;
};

}  // namespace detail

}  // namespace dist
