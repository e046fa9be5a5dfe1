#pragma once

#include <signal.h>

namespace dist::io {

/// While it lives, a write beyond the limit on the size of files (ulimit -f) fails in this thread without the signal that
/// would end the program: it blocks the signal, and takes what a write of this thread sent. Handlers stay as they are.
class NoFileSizeSignal {
 public:
  NoFileSizeSignal() noexcept {
    sigset_t pending;
    sigemptyset(&pending);
    sigpending(&pending);
    pending_before_ = sigismember(&pending, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, signal(), &before_);
  }
  NoFileSizeSignal(const NoFileSizeSignal&) = delete;
  NoFileSizeSignal& operator=(const NoFileSizeSignal&) = delete;
  ~NoFileSizeSignal() {
    constexpr timespec at_once{};
    if (raised_ && !pending_before_) sigtimedwait(signal(), nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  /// To be called when a write has failed with EFBIG, which may have sent the signal.
  void raised() noexcept { raised_ = true; }

 private:
  [[nodiscard]] static const sigset_t* signal() noexcept {
    static const sigset_t set = [] {
      sigset_t one;
      sigemptyset(&one);
      sigaddset(&one, SIGXFSZ);
      return one;
    }();
    return &set;
  }

  sigset_t before_;
  bool pending_before_ = false;
  bool raised_ = false;
};

}  // namespace dist::io
