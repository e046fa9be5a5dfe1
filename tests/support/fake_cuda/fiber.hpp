#pragma once

#include <ucontext.h>

#include <cstddef>

namespace fake_cuda {

/// A stack of its own, on which one function after another runs, and may pause.
class Fiber {
 public:
  Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  /// Runs `body(argument)` until it pauses or returns.
  void start(void (*body)(void*), void* argument);
  /// Lets what paused go on.
  void resume();
  /// Back to who started or resumed the fiber on which this is called.
  static void pause();

  /// Forgets what was on the stack, also for the thread sanitizer: whoever runs next is somebody else.
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
  Fiber* outer_ = nullptr;  // on which `start` or `resume` was called
};

}  // namespace fake_cuda
