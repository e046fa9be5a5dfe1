#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <utility>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/device/cuda/api.hpp>
#include <dist/device/cuda/buffer.hpp>
#include <dist/device/cuda/last_work.hpp>
#include <dist/device/cuda/stream.hpp>
#include <dist/device/pending.hpp>

namespace dist::cuda {

/// Copies between a GPU and pageable host memory through pinned buffers, on a stream. Copies to the host arrive in
/// `deliver`.
class Staging {
 public:
  /// The maximum total size of pending copies in bytes.
  static constexpr std::size_t most = std::size_t{16} << 20;

  /// True if `bytes` more bytes fit. Always true for up to `most` bytes without pending copies.
  [[nodiscard]] bool has_room_for(std::size_t bytes) const noexcept { return bytes <= most - held_; }

  /// True if pending copies use more than half of the allocated memory.
  [[nodiscard]] bool is_half_used() const noexcept { return !buffers_.empty() && 2 * used_ > buffers_.back().size(); }

  /// `from` may change after the call.
  void upload(const std::byte* from, std::byte* to, std::size_t bytes, StreamRef stream) {
    std::byte* const part = take(bytes);
    std::memcpy(part, from, bytes);
    cuda::check(cudaMemcpyAsync(to, part, bytes, cudaMemcpyHostToDevice, stream.get()), "cudaMemcpyAsync to the GPU",
                stream.device());
    note_work(stream.device(), copy_work);
  }
  /// `arrival`, if not null, owns `to` and receives the outcome.
  void download(const std::byte* from, std::byte* to, std::size_t bytes, StreamRef stream,
                std::shared_ptr<HostCopyState> arrival = nullptr) {
    std::byte* const part = take(bytes);
    cuda::check(cudaMemcpyAsync(part, from, bytes, cudaMemcpyDeviceToHost, stream.get()), "cudaMemcpyAsync to the host",
                stream.device());
    note_work(stream.device(), copy_work);
    downloads_.push_back({put_++, part, to, bytes, std::move(arrival)});
  }

  /// Writes downloads to their destinations. Requires that all work of the stream is done.
  void deliver() {
    for (const Download& each : downloads_) {
      if (each.to != nullptr) std::memcpy(each.to, each.part, each.bytes);
      if (each.arrival != nullptr) each.arrival->state = HostCopyState::State::there;
    }
    downloads_.clear();
    if (buffers_.size() > 1) buffers_.erase(buffers_.begin(), buffers_.end() - 1);  // the last is the largest
    used_ = held_ = 0;
  }

  /// The number of copies to the host that were submitted: the number of the next one.
  [[nodiscard]] std::uint64_t downloads() const noexcept { return put_; }

  /// Cancels downloads with numbers from `since` on, with the reason `why`, if any. Their transfers may continue.
  void cancel(std::uint64_t since = 0, const std::exception_ptr& why = nullptr) noexcept {
    for (; !downloads_.empty() && downloads_.back().number >= since; downloads_.pop_back()) {
      HostCopyState* const arrival = downloads_.back().arrival.get();
      if (arrival == nullptr) continue;
      arrival->state = HostCopyState::State::lost;
      arrival->why = why;
    }
  }
  /// Cancels downloads whose destinations have no owner.
  void drop(std::uint64_t since) noexcept {
    for (Download& each : downloads_)
      if (each.number >= since && each.arrival == nullptr) each.to = nullptr;
  }

 private:
  struct Download {
    std::uint64_t number;
    const std::byte* part;
    std::byte* to;  // null if cancelled
    std::size_t bytes;
    std::shared_ptr<HostCopyState> arrival;
  };

  [[nodiscard]] std::byte* take(std::size_t bytes) {
    constexpr std::size_t alignment = 256, least = std::size_t{64} << 10;
    bytes = (bytes + alignment - 1) / alignment * alignment;
    if (buffers_.empty() || buffers_.back().size() - used_ < bytes) {
      buffers_.emplace_back(std::max(bytes, buffers_.empty() ? least : 2 * buffers_.back().size()));
      used_ = 0;
    }
    std::byte* const part = buffers_.back().data() + used_;
    used_ += bytes;
    held_ = std::min(held_ + bytes, most);
    return part;
  }

  std::vector<PinnedBuffer> buffers_;
  std::size_t used_ = 0;  // in the last buffer
  std::size_t held_ = 0;  // in all buffers
  std::vector<Download> downloads_;
  std::uint64_t put_ = 0;
};

}  // namespace dist::cuda
