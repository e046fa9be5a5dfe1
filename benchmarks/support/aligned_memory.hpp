#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <span>

namespace bench {

/// Page-aligned memory, optionally shared with forked children, with huge pages if available, like the library's
/// arena.
template <class T>
class AlignedMemory {
 public:
  explicit AlignedMemory(std::size_t count, bool shared = false) : count_(count) {
    const int sharing = shared ? MAP_SHARED : MAP_PRIVATE;
    void* start = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) {
      std::perror("no memory");
      std::exit(1);
    }
    static_cast<void>(madvise(start, bytes(), MADV_HUGEPAGE));
    start_ = static_cast<T*>(start);
  }
  AlignedMemory(const AlignedMemory&) = delete;
  AlignedMemory& operator=(const AlignedMemory&) = delete;
  ~AlignedMemory() { munmap(start_, bytes()); }

  [[nodiscard]] T* data() const { return start_; }
  [[nodiscard]] std::span<T> first(std::size_t count) const { return {start_, count}; }

 private:
  [[nodiscard]] std::size_t bytes() const { return count_ * sizeof(T) + 1; }

  std::size_t count_;
  T* start_;
};

}  // namespace bench
