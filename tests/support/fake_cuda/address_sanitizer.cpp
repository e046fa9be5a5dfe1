#include "address_sanitizer.hpp"

// Null if the program does not run under the address sanitizer.
extern "C" {
#define DIST_WEAK __attribute__((weak))
DIST_WEAK void __asan_poison_memory_region(const volatile void* first, std::size_t bytes);
DIST_WEAK void __asan_unpoison_memory_region(const volatile void* first, std::size_t bytes);
DIST_WEAK void __sanitizer_start_switch_fiber(void** kept, const void* bottom, std::size_t bytes);
DIST_WEAK void __sanitizer_finish_switch_fiber(void* kept, const void** left_bottom, std::size_t* left_bytes);
#undef DIST_WEAK
}

namespace fake_cuda {

void poison(void* first, std::size_t bytes) noexcept {
  if (__asan_poison_memory_region != nullptr) __asan_poison_memory_region(first, bytes);
}
void unpoison(void* first, std::size_t bytes) noexcept {
  if (__asan_unpoison_memory_region != nullptr) __asan_unpoison_memory_region(first, bytes);
}

void leave_stack(void** kept, const void* bottom, std::size_t bytes) noexcept {
  if (__sanitizer_start_switch_fiber != nullptr) __sanitizer_start_switch_fiber(kept, bottom, bytes);
}
void arrive_on_stack(void* kept, const void** left_bottom, std::size_t* left_bytes) noexcept {
  if (__sanitizer_finish_switch_fiber != nullptr) __sanitizer_finish_switch_fiber(kept, left_bottom, left_bytes);
}

}  // namespace fake_cuda
