#pragma once

#include <signal.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>

#include <dist/core/config.hpp>
#include <dist/core/error.hpp>

namespace dist::detail {

/// Lets a signal set a flag, instead of its previous action, during the lifetime of this object. One object per process
/// at a time.
class SignalFlag {
 public:
  /// Throws InvalidArgument if another object exists, or the signal cannot be handled.
  explicit SignalFlag(int signal);
  SignalFlag(const SignalFlag&) = delete;
  SignalFlag& operator=(const SignalFlag&) = delete;
  ~SignalFlag();

  /// Creates the flag if the program neither handles nor ignores the signal, and no other flag exists.
  static void make_if_free(std::optional<SignalFlag>& flag, int signal);
  /// True if the signal has arrived.
  [[nodiscard]] static bool came() noexcept { return is_set.load(std::memory_order_relaxed); }
  /// Sets the exit status for a program that exits because of the signal.
  static void obey(int exit_code) noexcept { status.store(exit_code, std::memory_order_relaxed); }
  /// Returns that status, also after the object is destroyed; 0 if none was set.
  [[nodiscard]] static int obeyed() noexcept { return status.load(std::memory_order_relaxed); }

 private:
  static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may set atomics without locks alone");
  static inline constinit std::atomic<bool> is_set{false};
  static inline constinit std::atomic<bool> exists{false};
  static inline constinit std::atomic<int> status{0};

  int signal_;
  struct sigaction before_ {};
};

}  // namespace dist::detail

#ifndef DIST_COMPILED
#include <dist/device/signal_flag.ipp>
#endif
