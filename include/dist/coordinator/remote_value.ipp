#pragma once

#include <dist/coordinator/remote_value.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/device/slow_wait.hpp>
#include <dist/device/wait.hpp>

namespace dist {

DIST_INLINE std::string_view to_string_view(RemoteState state) {
  constexpr std::string_view names[] = {"not ready", "ready", "failed", "cancelled", "aborted"};
  return names[static_cast<std::size_t>(state)];
}

namespace detail {

DIST_INLINE void RemoteResult::finish(std::vector<std::byte> bytes) {
  const std::lock_guard lock{mutex_};
  if (state_ != RemoteState::not_ready) return;
  bytes_ = std::move(bytes);
  end(RemoteState::ready);
}
[[gnu::cold]] DIST_INLINE void RemoteResult::fail(RemoteState state, std::exception_ptr error) {
  const std::lock_guard lock{mutex_};
  if (state_ != RemoteState::not_ready) return;
  error_ = std::move(error);
  end(state);
}
DIST_INLINE std::span<const std::byte> RemoteResult::wait(std::optional<Clock::time_point> until) const {
  const auto ended = [&] { return state() != RemoteState::not_ready; };
  look_within(SpinBudget::of_a_wake(), ended);
  SlowWait wait;
  std::unique_lock lock{mutex_};
  for (;;) {
    const Clock::time_point next = Clock::now() + std::chrono::milliseconds{100};
    if (changed_.wait_until(lock, until ? std::min(*until, next) : next, ended)) break;
    if (until && Clock::now() >= *until)
      throw DeadlineExceeded("The result of a scheduled function did not arrive in time",
                             "the function waits for a worker, or still runs", "Give fetch a longer timeout");
    wait.note([] { return std::string_view{"for the result of a scheduled function"}; });
  }
  if (error_) std::rethrow_exception(error_);
  return bytes_;
}
DIST_INLINE void RemoteResult::end(RemoteState state) {
  state_.store(state, std::memory_order_release);
  changed_.notify_all();
}

}  // namespace detail

}  // namespace dist
