/// Annotations for the address sanitizer, if the program runs under it.
#pragma once

#include <cstddef>

namespace fake_cuda {

/// Forbids access to these bytes, or allows it again.
void poison(void* first, std::size_t bytes) noexcept;
void unpoison(void* first, std::size_t bytes) noexcept;

/// Annotates a switch of stacks: `leave` before it, with the target stack, and `arrive` after it. `leave` stores the
/// state of the old stack in `kept` for a later `arrive`; null if the stack is never entered again.
void leave_stack(void** kept, const void* bottom, std::size_t bytes) noexcept;
void arrive_on_stack(void* kept, const void** left_bottom, std::size_t* left_bytes) noexcept;

}  // namespace fake_cuda
