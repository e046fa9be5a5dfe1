#pragma once

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <span>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/error.hpp>

namespace dist {

/// The memory that a strategy gives its variables: one contiguous, page-aligned region per replica of this process, all
/// with the same layout. A slice is one offset that holds in every region, so a collective knows where its
/// peers' elements are without asking, and works on them in place.
///
/// Regions are reserved as addresses only; pages come with their first touch, zeroed, near the processor that touched
/// them. Thread-safe.
class Arena {
 public:
  /// Reserves `replicas` regions. `capacity` is the most that all slices of one region may hold together, in bytes; it
  /// costs addresses, not memory. Throws OutOfMemory when even addresses are refused.
  Arena(std::size_t replicas, std::size_t capacity) : capacity_(round_up(capacity)) {
    regions_.reserve(replicas);
    for (std::size_t replica = 0; replica < replicas; ++replica) {
      void* region = mmap(nullptr, capacity_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (region == MAP_FAILED) {
        const int code = errno;
        unmap();
        throw OutOfMemory(text("No address space for the arena of replica ", replica),
                          text(capacity_, " bytes: ", std::strerror(code)),
                          "Raise the limit on virtual memory (ulimit -v), or ask for fewer replicas");
      }
      // Collectives stream through all regions at once; with small pages they wait for address translation. Advice
      // only.
      static_cast<void>(madvise(region, capacity_, MADV_HUGEPAGE));
      regions_.push_back(static_cast<std::byte*>(region));
    }
    free_.push_back({0, capacity_});
  }
  /// In memory that other processes map too (SharedMemory), which is zeroed and outlives the arena: the regions lie
  /// one after another in `shared`, which starts at a page.
  Arena(std::size_t replicas, std::span<std::byte> shared)
      : capacity_(shared.size() / std::max<std::size_t>(replicas, 1) / page_size() * page_size()), is_shared_(true) {
    for (std::size_t replica = 0; replica < replicas; ++replica)
      regions_.push_back(shared.data() + replica * capacity_);
    free_.push_back({0, capacity_});
  }
  /// With room for all memory of the machine, or what the limits of this process leave of it, in equal shares: regions
  /// fill alike, so together they can never hold more.
  explicit Arena(std::size_t replicas) : Arena(replicas, largest_reservation() / std::max<std::size_t>(replicas, 1)) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() { unmap(); }

  /// The memory of this machine, in bytes: the most that slices can ever hold together.
  [[nodiscard]] static std::size_t physical_memory() noexcept {
    return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * page_size();
  }

  /// The most bytes for memory that is mapped `mappings` times: that of the machine, or an equal share of half the
  /// addresses that the limit on virtual memory (ulimit -v) leaves; threads, libraries and the program's own data have
  /// the other half.
  [[nodiscard]] static std::size_t largest_reservation(std::size_t mappings = 1) {
    const std::size_t memory = physical_memory();
    rlimit limit{};
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return memory;
    std::size_t used = 0;
    if (std::FILE* const file = std::fopen("/proc/self/statm", "re")) {
      if (std::fscanf(file, "%zu", &used) != 1) used = 0;  // pages
      std::fclose(file);
    }
    used *= page_size();
    const std::size_t left = limit.rlim_cur > used ? limit.rlim_cur - used : 0;
    return std::clamp(left / 2 / mappings / page_size() * page_size(), page_size(), memory);
  }

  [[nodiscard]] std::size_t replicas() const noexcept { return regions_.size(); }
  [[nodiscard]] std::byte* at(std::size_t replica, std::size_t offset) const noexcept {
    return regions_[replica] + offset;
  }

  /// The offset of a new slice of `bytes` zero bytes, aligned to a page. Throws OutOfMemory.
  [[nodiscard]] std::size_t allocate(std::size_t bytes) {
    const std::size_t size = round_up(std::max<std::size_t>(bytes, 1));
    const std::lock_guard lock{mutex_};
    auto gap = free_.begin();
    while (gap != free_.end() && gap->size < size) ++gap;
    if (gap == free_.end() || bytes > capacity_)  // rounding up may have overflowed
      throw OutOfMemory("The strategy's arena is full",
                        text(bytes, " more bytes were asked for, the arena holds ", capacity_),
                        "Free variables that are no longer used, raise the limits on virtual memory and file size "
                        "(ulimit -v, -f) if there are any, or run on a machine with more memory");
    const std::size_t offset = gap->offset;
    for (std::size_t replica = 0; replica < replicas(); ++replica)
      if (!is_shared_ && mprotect(at(replica, offset), size, PROT_READ | PROT_WRITE) != 0)
        throw OutOfMemory(text("No memory for a slice of replica ", replica),
                          text(bytes, " bytes: ", std::strerror(errno)),
                          "Free memory on this machine, or use smaller variables");
    gap->offset += size;
    gap->size -= size;
    if (gap->size == 0) free_.erase(gap);
    return offset;
  }

  /// Gives back the slice of `bytes` bytes at `offset`, and its pages to the operating system.
  void release(std::size_t offset, std::size_t bytes) noexcept {
    const std::size_t size = round_up(std::max<std::size_t>(bytes, 1));
    const std::lock_guard lock{mutex_};
    for (std::size_t replica = 0; replica < replicas(); ++replica) {
      // Without its pages the next slice here starts from zeros like every other. The system keeps those that the
      // program has locked (mlock, mlockall).
      if (madvise(at(replica, offset), size, is_shared_ ? MADV_REMOVE : MADV_DONTNEED) != 0)
        std::memset(at(replica, offset), 0, size);
      if (!is_shared_) static_cast<void>(mprotect(at(replica, offset), size, PROT_NONE));
    }
    auto next = free_.begin();
    while (next != free_.end() && next->offset <= offset) ++next;
    next = free_.insert(next, {offset, size});
    if (next + 1 != free_.end() && next->offset + next->size == (next + 1)->offset) {
      next->size += (next + 1)->size;
      free_.erase(next + 1);
    }
    if (next != free_.begin() && (next - 1)->offset + (next - 1)->size == next->offset) {
      (next - 1)->size += next->size;
      free_.erase(next);
    }
  }

 private:
  struct Gap {
    std::size_t offset;
    std::size_t size;
  };

  static std::size_t page_size() noexcept {
    static const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return size;
  }
  static std::size_t round_up(std::size_t bytes) noexcept {
    return (bytes + page_size() - 1) / page_size() * page_size();
  }

  void unmap() noexcept {
    if (is_shared_) return;  // the memory belongs to its owner
    for (std::byte* region : regions_) munmap(region, capacity_);
  }

  std::size_t capacity_;
  bool is_shared_ = false;
  std::vector<std::byte*> regions_;
  std::vector<Gap> free_;  // by offset; no two touch
  std::mutex mutex_;
};

}  // namespace dist
