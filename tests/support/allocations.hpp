// Replaces the allocation functions of the test program by counting ones. Included by one file of a program.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "support/sanitizers.hpp"

inline std::atomic<std::size_t> allocations = 0;          ///< total number of allocations
inline std::atomic<std::ptrdiff_t> live_allocations = 0;  ///< allocations that were not freed

// Excludes nvcc, which would compile the functions for GPUs, and clang++'s thread sanitizer, some of whose functions
// cannot be replaced: nothing is counted there.
#if !defined(__CUDACC__) && !(defined(__clang__) && defined(DIST_TEST_THREAD_SANITIZER))

// Not inlined: g++ reports a mismatched delete expression if it sees std::free through only one of the two functions.
#define DIST_TEST_NOINLINE __attribute__((noinline))

DIST_TEST_NOINLINE void* operator new(std::size_t size) {
  ++allocations, ++live_allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc{};
}
DIST_TEST_NOINLINE void* operator new(std::size_t size, std::align_val_t alignment) {
  ++allocations, ++live_allocations;
  const auto align = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(align, (size + align - 1) / align * align)) return memory;
  throw std::bad_alloc{};
}
// Replaced because a sanitizer's version would not match the first one.
DIST_TEST_NOINLINE void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations, ++live_allocations;
  return std::malloc(size);
}
DIST_TEST_NOINLINE void operator delete(void* memory) noexcept {
  if (memory != nullptr) --live_allocations;
  std::free(memory);
}
DIST_TEST_NOINLINE void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }
DIST_TEST_NOINLINE void operator delete(void* memory, std::align_val_t) noexcept { operator delete(memory); }
DIST_TEST_NOINLINE void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  operator delete(memory);
}

#endif
