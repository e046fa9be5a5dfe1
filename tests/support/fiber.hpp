// A function on a separate stack, which may pause: several of them take turns in one thread.
#pragma once

#include <cxxabi.h>
#include <ucontext.h>

#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>

#include <support/sanitizers.hpp>
#include <support/strand.hpp>

#ifdef _LIBCPP_VERSION  // libc++abi defines this function, but no header declares it
namespace __cxxabiv1 {
extern "C" void* __cxa_get_globals() noexcept;
}
#endif
#ifdef DIST_TEST_ADDRESS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef DIST_TEST_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace support {

/// Runs `body`, which must not throw, from the first `resume` on. It must run to completion.
class Fiber final : public Strand {
 public:
  explicit Fiber(std::function<void()> body) : body_(std::move(body)), stack_(new std::byte[stack_bytes]) {
    getcontext(&here_);
    here_.uc_stack.ss_sp = stack_.get();
    here_.uc_stack.ss_size = stack_bytes;
    here_.uc_link = nullptr;
    makecontext(&here_, reinterpret_cast<void (*)()>(&Fiber::begin), 0);
#ifdef DIST_TEST_THREAD_SANITIZER
    known_as_ = __tsan_create_fiber(0);
#endif
  }
#ifdef DIST_TEST_THREAD_SANITIZER
  ~Fiber() override { __tsan_destroy_fiber(known_as_); }
#endif

  void resume() override {
    running = this;
    Exceptions of_caller;
    of_caller.swap_with(exceptions_);
#ifdef DIST_TEST_ADDRESS_SANITIZER
    void* kept = nullptr;
    __sanitizer_start_switch_fiber(&kept, stack_.get(), stack_bytes);
#endif
#ifdef DIST_TEST_THREAD_SANITIZER
    caller_known_as_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(known_as_, 0);
#endif
    swapcontext(&caller_, &here_);
#ifdef DIST_TEST_ADDRESS_SANITIZER
    __sanitizer_finish_switch_fiber(kept, nullptr, nullptr);
#endif
    exceptions_.swap_with(of_caller);
  }
  void pause() override { leave(); }

 private:
  static constexpr std::size_t stack_bytes = std::size_t{256} << 10;

  /// The exceptions being handled, which the language stores per thread.
  struct Exceptions {
    alignas(void*) unsigned char kept[2 * sizeof(void*)] = {};

    /// Saves the thread's exceptions and replaces them by `others`.
    void swap_with(const Exceptions& others) {
      void* const of_thread = abi::__cxa_get_globals();
      Exceptions mine;
      std::memcpy(mine.kept, of_thread, sizeof(kept));
      std::memcpy(of_thread, others.kept, sizeof(kept));
      *this = mine;
    }
  };

  static void begin() {
    Fiber& self = *running;
    self.arrive();
    self.body_();
    self.ended_ = true;
    self.leave();
  }
  void arrive() {
#ifdef DIST_TEST_ADDRESS_SANITIZER
    __sanitizer_finish_switch_fiber(kept_, &caller_stack_, &caller_stack_bytes_);
#endif
  }
  void leave() {
#ifdef DIST_TEST_ADDRESS_SANITIZER
    __sanitizer_start_switch_fiber(ended_ ? nullptr : &kept_, caller_stack_, caller_stack_bytes_);
#endif
#ifdef DIST_TEST_THREAD_SANITIZER
    __tsan_switch_to_fiber(caller_known_as_, 0);
#endif
    swapcontext(&here_, &caller_);
    arrive();
  }

  static inline thread_local Fiber* running = nullptr;

  std::function<void()> body_;
  std::unique_ptr<std::byte[]> stack_;
  ucontext_t here_{};
  ucontext_t caller_{};
  Exceptions exceptions_;
#ifdef DIST_TEST_ADDRESS_SANITIZER
  void* kept_ = nullptr;
  const void* caller_stack_ = nullptr;
  std::size_t caller_stack_bytes_ = 0;
#endif
#ifdef DIST_TEST_THREAD_SANITIZER
  void* known_as_ = nullptr;
  void* caller_known_as_ = nullptr;
#endif
};

}  // namespace support
