#pragma once

#include <ucontext.h>

#include <cstddef>

namespace fake_cuda {

/// A separate stack that runs functions one after another, which may pause.
class Fiber {
 public:
  Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  /// Runs `body(argument)` until it pauses or returns.
  void start(void (*body)(void*), void* argument);
  void resume();
  /// Returns to the caller of `start` or `resume`. Call it on the fiber.
  static void pause();

  /// Discards the content of the stack, also for the thread sanitizer: the next function is a different execution.
  void renew();

 private:
  static void run(unsigned high, unsigned low);
  void switch_here();
  void switch_back(bool for_ever);

  char* stack_ = nullptr;
  void (*body_)(void*) = nullptr;
  void* argument_ = nullptr;
  ucontext_t here_{};
  ucontext_t caller_{};
  void* kept_here_ = nullptr;  // for the address sanitizer
  const void* caller_stack_ = nullptr;
  std::size_t caller_stack_bytes_ = 0;
  Fiber* outer_ = nullptr;  // the fiber that called `start` or `resume`
};

}  // namespace fake_cuda
