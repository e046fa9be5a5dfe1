/// What the address sanitizer is told, where the program runs under it.
#pragma once

#include <cstddef>

namespace fake_cuda {

/// Nobody may access these bytes, or they may again.
void poison(void* first, std::size_t bytes) noexcept;
void unpoison(void* first, std::size_t bytes) noexcept;

/// A change of stacks: `leave` before it, with the stack to which it goes, `arrive` after it. What `leave` kept of the
/// stack that is left, `arrive` takes when it is entered again; a stack that is left for ever keeps nothing.
void leave_stack(void** kept, const void* bottom, std::size_t bytes) noexcept;
void arrive_on_stack(void* kept, const void** left_bottom, std::size_t* left_bytes) noexcept;

}  // namespace fake_cuda
