// Replaces the allocation functions of the test program by ones that count. Included by one file of a program.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "support/sanitizers.hpp"

inline std::atomic<std::size_t> allocations = 0;          ///< so far
inline std::atomic<std::ptrdiff_t> live_allocations = 0;  ///< allocations that were not freed

// nvcc would compile the functions for GPUs, too, and clang++'s thread sanitizer has some that no program replaces: there
// nothing is counted.
#if !defined(__CUDACC__) && !(defined(__clang__) && defined(DIST_TEST_THREAD_SANITIZER))

// Not inlined: g++ takes a delete expression that ends in std::free for a mismatch when it sees through only
// one of the two.
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
// Of which the library's own, under a sanitizer, is not the same as the first.
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
