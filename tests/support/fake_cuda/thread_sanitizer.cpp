#include "thread_sanitizer.hpp"

// Null if the program does not run under the thread sanitizer.
extern "C" {
#define DIST_WEAK __attribute__((weak))
DIST_WEAK void* __tsan_create_fiber(unsigned flags);
DIST_WEAK void* __tsan_get_current_fiber();
DIST_WEAK void __tsan_destroy_fiber(void* fiber);
DIST_WEAK void __tsan_switch_to_fiber(void* fiber, unsigned flags);
DIST_WEAK void __tsan_set_fiber_name(void* fiber, const char* name);
DIST_WEAK void __tsan_acquire(void* address);
DIST_WEAK void __tsan_release(void* address);
DIST_WEAK void __tsan_read_range(void* first, unsigned long bytes);
DIST_WEAK void __tsan_write_range(void* first, unsigned long bytes);
DIST_WEAK void AnnotateIgnoreReadsBegin(const char* file, int line);
DIST_WEAK void AnnotateIgnoreReadsEnd(const char* file, int line);
DIST_WEAK void AnnotateIgnoreWritesBegin(const char* file, int line);
DIST_WEAK void AnnotateIgnoreWritesEnd(const char* file, int line);
DIST_WEAK void AnnotateIgnoreSyncBegin(const char* file, int line);
DIST_WEAK void AnnotateIgnoreSyncEnd(const char* file, int line);
#undef DIST_WEAK
}

namespace fake_cuda {
namespace {

constexpr unsigned no_order = 1;  // flag of __tsan_switch_to_fiber: a switch does not synchronise

void ignore_sync(bool ignore) noexcept {
  if (!under_thread_sanitizer()) return;
  if (ignore)
    AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
  else
    AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
}

}  // namespace

bool under_thread_sanitizer() noexcept { return __tsan_create_fiber != nullptr; }

void see_accesses(bool see) noexcept {
  if (!under_thread_sanitizer()) return;
  if (see) {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  } else {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
}

UnseenAccesses::UnseenAccesses() noexcept { see_accesses(false); }
UnseenAccesses::~UnseenAccesses() { see_accesses(true); }

UnseenCall::UnseenCall() noexcept { ignore_sync(true); }
UnseenCall::~UnseenCall() { ignore_sync(false); }

SeenSync::SeenSync() noexcept { ignore_sync(false); }
SeenSync::~SeenSync() { ignore_sync(true); }

void Moment::mark() noexcept {
  if (under_thread_sanitizer()) __tsan_release(&address_);
}
void Moment::follow() noexcept {
  if (under_thread_sanitizer()) __tsan_acquire(&address_);
}
Execution::Execution(const char* name) {
  if (!under_thread_sanitizer()) return;
  fiber_ = __tsan_create_fiber(0);
  __tsan_set_fiber_name(fiber_, name);
}
Execution Execution::current() noexcept {
  Execution execution;
  if (under_thread_sanitizer()) execution.fiber_ = __tsan_get_current_fiber();
  return execution;
}
void Execution::enter() const noexcept {
  if (fiber_ != nullptr) __tsan_switch_to_fiber(fiber_, no_order);
}
void Execution::end() noexcept {
  if (fiber_ != nullptr) __tsan_destroy_fiber(fiber_);
  fiber_ = nullptr;
}

void reads(const void* first, std::size_t bytes) noexcept {
  if (under_thread_sanitizer()) __tsan_read_range(const_cast<void*>(first), bytes);
}
void writes(void* first, std::size_t bytes) noexcept {
  if (under_thread_sanitizer()) __tsan_write_range(first, bytes);
}

}  // namespace fake_cuda
