#pragma once

#include <signal.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>

#include <dist/core/error.hpp>

namespace dist::detail {

/// While it lives, a signal sets a flag instead of doing what it did before, which it does again afterwards. One at a time
/// in a process.
class SignalFlag {
 public:
  /// Throws InvalidArgument where there is one already, or the system does not let the signal be handled.
  explicit SignalFlag(int signal) : signal_(signal) {
    if (exists.exchange(true))
      throw InvalidArgument("A second PreemptionHandler was made", "the first one still waits for its signal",
                            "Use one for the whole program");
    is_set.store(false);
    status.store(0);
    struct sigaction handle {};
    handle.sa_handler = [](int) { is_set.store(true, std::memory_order_relaxed); };
    handle.sa_flags = SA_RESTART;
    sigemptyset(&handle.sa_mask);
    if (sigaction(signal_, &handle, &before_) != 0) {
      exists.store(false);
      throw InvalidArgument(concat("Signal ", signal, " cannot be handled"), std::strerror(errno),
                            "Give one that a program may handle, such as SIGTERM");
    }
  }
  SignalFlag(const SignalFlag&) = delete;
  SignalFlag& operator=(const SignalFlag&) = delete;
  ~SignalFlag() {
    sigaction(signal_, &before_, nullptr);
    exists.store(false);
  }

  /// Makes the flag of a signal that the program neither handles nor ignores, unless there is another flag.
  static void make_if_free(std::optional<SignalFlag>& flag, int signal) {
    struct sigaction now {};
    if (signal <= 0 || sigaction(signal, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) != 0 ||
        now.sa_handler != SIG_DFL)
      return;
    try {
      flag.emplace(signal);
    } catch (const InvalidArgument&) {  // another one was made meanwhile
    }
  }
  /// Whether the signal has come.
  [[nodiscard]] static bool came() noexcept { return is_set.load(std::memory_order_relaxed); }
  /// The program ends with this status because the signal has come.
  static void obey(int exit_code) noexcept { status.store(exit_code, std::memory_order_relaxed); }
  /// That status, also after the end of the object; 0 where the program has not obeyed.
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
