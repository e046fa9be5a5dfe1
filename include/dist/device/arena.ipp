#pragma once

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/device/arena.hpp>

namespace dist {

DIST_INLINE Arena::Arena(std::size_t replicas, std::size_t capacity) : capacity_(round_up(capacity)) {
  regions_.reserve(replicas);
  for (std::size_t replica = 0; replica < replicas; ++replica) {
    void* region = mmap(nullptr, capacity_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (region == MAP_FAILED) {
      const int code = errno;
      unmap();
      throw OutOfMemory(concat("No address space for the arena of replica ", replica),
                        concat(capacity_, " bytes: ", std::strerror(code)),
                        "Raise the limit on virtual memory (ulimit -v), or use fewer replicas");
    }
    // Collectives access all regions at once; with small pages they would be limited by TLB misses. A hint only.
    static_cast<void>(madvise(region, capacity_, MADV_HUGEPAGE));
    regions_.push_back(static_cast<std::byte*>(region));
  }
  free_.push_back({0, capacity_});
}

DIST_INLINE Arena::Arena(std::size_t replicas, std::span<std::byte> shared)
    : capacity_(shared.size() / std::max<std::size_t>(replicas, 1) / page_size() * page_size()), is_shared_(true) {
  for (std::size_t replica = 0; replica < replicas; ++replica) regions_.push_back(shared.data() + replica * capacity_);
  free_.push_back({0, capacity_});
}

DIST_INLINE Arena::Arena(std::size_t replicas)
    : Arena(replicas, largest_reservation() / std::max<std::size_t>(replicas, 1)) {}

DIST_INLINE Arena::~Arena() { unmap(); }

DIST_INLINE std::size_t Arena::physical_memory() noexcept {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * page_size();
}

DIST_INLINE std::size_t Arena::largest_reservation(std::size_t mappings) {
  const std::size_t memory = physical_memory();
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return memory;
  std::size_t used = 0;
  if (std::FILE* const file = std::fopen("/proc/self/statm", "re")) {
    if (std::fscanf(file, "%zu", &used) != 1) used = 0;
    std::fclose(file);
  }
  used *= page_size();
  const std::size_t left = limit.rlim_cur > used ? limit.rlim_cur - used : 0;
  return std::clamp(left / 2 / mappings / page_size() * page_size(), page_size(), memory);
}

DIST_INLINE std::size_t Arena::allocate(std::size_t bytes) {
  const std::size_t size = round_up(std::max<std::size_t>(bytes, 1));
  const std::lock_guard lock{mutex_};
  auto gap = free_.begin();
  while (gap != free_.end() && gap->size() < size) ++gap;
  if (gap == free_.end() || bytes > capacity_)  // rounding up may have overflowed
    throw OutOfMemory("The strategy's arena is full",
                      concat(bytes, " more bytes were requested, the arena holds ", capacity_),
                      "Free unused variables, raise any limits on virtual memory and file size (ulimit -v, -f), or run "
                      "on a machine with more memory");
  const std::size_t offset = gap->begin;
  for (std::size_t replica = 0; replica < replicas(); ++replica)
    if (!is_shared_ && mprotect(at(replica, offset), size, PROT_READ | PROT_WRITE) != 0)
      throw OutOfMemory(concat("No memory for a slice of replica ", replica),
                        concat(bytes, " bytes: ", std::strerror(errno)),
                        "Free memory on this machine, or use smaller variables");
  gap->begin += size;
  if (gap->size() == 0) free_.erase(gap);
  return offset;
}

DIST_INLINE void Arena::release(std::size_t offset, std::size_t bytes) noexcept {
  const std::size_t size = round_up(std::max<std::size_t>(bytes, 1));
  const std::lock_guard lock{mutex_};
  for (std::size_t replica = 0; replica < replicas(); ++replica) {
    // Drops the pages, so that the next slice here starts with zeros. The system keeps pages that the program has
    // locked (mlock, mlockall).
    std::byte* const slice = at(replica, offset);
    if (madvise(slice, size, is_shared_ ? MADV_REMOVE : MADV_DONTNEED) != 0 || (is_shared_ && keeps_shared_pages()))
      std::memset(slice, 0, size);
    if (!is_shared_) static_cast<void>(mprotect(slice, size, PROT_NONE));
  }
  auto next = free_.begin();
  while (next != free_.end() && next->begin <= offset) ++next;
  next = free_.insert(next, {offset, offset + size});
  if (next + 1 != free_.end() && next->end == (next + 1)->begin) {
    next->end = (next + 1)->end;
    free_.erase(next + 1);
  }
  if (next != free_.begin() && (next - 1)->end == next->begin) {
    (next - 1)->end = next->end;
    free_.erase(next);
  }
}

DIST_INLINE std::size_t Arena::page_size() noexcept {
  static const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

DIST_INLINE bool Arena::keeps_shared_pages() noexcept {
  static const bool keeps = [] {
    void* const page = mmap(nullptr, page_size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return false;
    std::byte* const first = static_cast<std::byte*>(page);
    *first = std::byte{1};
    const bool kept = madvise(page, page_size(), MADV_REMOVE) == 0 && *first != std::byte{0};
    munmap(page, page_size());
    return kept;
  }();
  return keeps;
}

DIST_INLINE std::size_t Arena::round_up(std::size_t bytes) noexcept {
  return (bytes + page_size() - 1) / page_size() * page_size();
}

DIST_INLINE void Arena::unmap() noexcept {
  if (is_shared_) return;  // the memory belongs to its owner
  for (std::byte* region : regions_) munmap(region, capacity_);
}

}  // namespace dist
