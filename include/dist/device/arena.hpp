#pragma once

#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>

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
  Arena(std::size_t replicas, std::size_t capacity);
  /// In memory that other processes map too (SharedMemory), which is zeroed and outlives the arena: the regions lie
  /// one after another in `shared`, which starts at a page.
  Arena(std::size_t replicas, std::span<std::byte> shared);
  /// With room for all memory of the machine, or what the limits of this process leave of it, in equal shares: regions
  /// fill alike, so together they can never hold more.
  explicit Arena(std::size_t replicas);
  /// The same for replicas on these devices, which are processors of one memory.
  explicit Arena(std::span<const std::size_t> devices) : Arena(devices.size()) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();

  /// The memory of this machine, in bytes: the most that slices can ever hold together.
  [[nodiscard]] static std::size_t physical_memory() noexcept;

  /// The most bytes for memory that is mapped `mappings` times: that of the machine, or an equal share of half the
  /// addresses that the limit on virtual memory (ulimit -v) leaves; threads, libraries and the program's own data have
  /// the other half.
  [[nodiscard]] static std::size_t largest_reservation(std::size_t mappings = 1);

  [[nodiscard]] std::size_t replicas() const noexcept { return regions_.size(); }
  [[nodiscard]] std::byte* at(std::size_t replica, std::size_t offset) const noexcept {
    return regions_[replica] + offset;
  }

  /// The offset of a new slice of `bytes` zero bytes, aligned to a page. Throws OutOfMemory.
  [[nodiscard]] std::size_t allocate(std::size_t bytes);

  /// Gives back the slice of `bytes` bytes at `offset`, and its pages to the operating system.
  void release(std::size_t offset, std::size_t bytes) noexcept;

 private:
  static std::size_t page_size() noexcept;
  static std::size_t round_up(std::size_t bytes) noexcept;

  /// Whether the system keeps shared pages that it was advised to remove, and says otherwise, as qemu-user does.
  [[nodiscard]] static bool keeps_shared_pages() noexcept;
  void unmap() noexcept;

  std::size_t capacity_;
  bool is_shared_ = false;
  std::vector<std::byte*> regions_;
  std::vector<IndexRange> free_;  // bytes of each region, in ascending order; no two touch
  std::mutex mutex_;
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/device/arena.ipp>
#endif
