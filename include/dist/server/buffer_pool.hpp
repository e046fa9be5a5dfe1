#pragma once

#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>

namespace dist::server {

/// Memory for snapshots that are on their way, used again, so that a step neither asks the system for pages nor clears
/// them. Thread-safe.
class BufferPool {
 public:
  using Buffer = AlignedBuffer<std::byte>;

  /// Memory of at least so many bytes, with any content.
  [[nodiscard]] Buffer take(std::size_t bytes) {
    {
      const std::lock_guard lock{mutex_};
      const auto fits = [&](const Buffer& buffer) { return buffer.size() >= bytes; };
      // The smallest that is large enough, as they are in order.
      const auto found = std::find_if(free_.begin(), free_.end(), fits);
      if (found != free_.end() && found->size() / 2 <= bytes) {
        Buffer buffer = std::move(*found);
        free_.erase(found);
        return buffer;
      }
    }
    return Buffer(bytes);
  }
  /// Keeps the memory for the next one; of more than `most_kept` the smallest goes.
  void give_back(Buffer buffer) {
    const std::lock_guard lock{mutex_};
    const auto larger = [&](const Buffer& other) { return other.size() >= buffer.size(); };
    free_.insert(std::find_if(free_.begin(), free_.end(), larger), std::move(buffer));
    if (free_.size() > most_kept) free_.erase(free_.begin());
  }

  static constexpr std::size_t most_kept = 16;

 private:
  std::mutex mutex_;
  std::vector<Buffer> free_;  ///< in the order of their sizes
};

}  // namespace dist::server
