#pragma once

#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>

namespace dist {

/// The variable memory of a strategy: one contiguous, page-aligned region per replica of this process, all with the
/// same layout. A slice has the same offset in all regions, so collectives work in place on their peers' elements.
///
/// Regions only reserve addresses; the first access to a page allocates it, zeroed, on the NUMA node of the accessing
/// processor. Thread-safe.
class Arena {
 public:
  /// Reserves `replicas` regions of `capacity` bytes of addresses, not memory. `capacity` limits the total size of
  /// slices per region. Throws OutOfMemory if the addresses cannot be reserved.
  Arena(std::size_t replicas, std::size_t capacity);
  /// Uses zeroed memory that other processes map too (SharedMemory), and that outlives the arena. The regions are
  /// consecutive in `shared`, which is page-aligned.
  Arena(std::size_t replicas, std::span<std::byte> shared);
  /// Reserves equal shares of the machine's memory, or of what the limits of this process allow: regions fill equally,
  /// so they cannot need more in total.
  explicit Arena(std::size_t replicas);
  /// Reserves memory for replicas on these devices, which are processors with shared memory.
  explicit Arena(std::span<const std::size_t> devices) : Arena(devices.size()) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();

  /// Returns the memory of this machine in bytes: an upper limit for all slices together.
  [[nodiscard]] static std::size_t physical_memory() noexcept;

  /// Returns the maximum size in bytes of memory that is mapped `mappings` times: the machine's memory, or an equal
  /// share of half the addresses that the limit on virtual memory (ulimit -v) leaves. The other half is for everything
  /// else.
  [[nodiscard]] static std::size_t largest_reservation(std::size_t mappings = 1);

  [[nodiscard]] std::size_t replicas() const noexcept { return regions_.size(); }
  [[nodiscard]] std::byte* at(std::size_t replica, std::size_t offset) const noexcept {
    return regions_[replica] + offset;
  }

  /// Allocates a page-aligned slice of `bytes` zero bytes. Returns its offset. Throws OutOfMemory.
  [[nodiscard]] std::size_t allocate(std::size_t bytes);

  /// Frees the slice of `bytes` bytes at `offset`, and returns its pages to the operating system.
  void release(std::size_t offset, std::size_t bytes) noexcept;

 private:
  static std::size_t page_size() noexcept;
  static std::size_t round_up(std::size_t bytes) noexcept;

  /// True if MADV_REMOVE reports success without removing shared pages, as in qemu-user.
  [[nodiscard]] static bool keeps_shared_pages() noexcept;
  void unmap() noexcept;

  std::size_t capacity_;
  bool is_shared_ = false;
  std::vector<std::byte*> regions_;
  std::vector<IndexRange> free_;  // bytes of each region, in ascending order and not adjacent
  std::mutex mutex_;
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/device/arena.ipp>
#endif
