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

/// Copies between a GPU and memory of the host that it does not reach, by way of memory that it does. They are put on a
/// stream; what comes to the host is there after `deliver`.
class Staging {
 public:
  /// The most bytes that copies under way hold together.
  static constexpr std::size_t most = std::size_t{16} << 20;

  /// Whether there is room for `bytes` more. Nothing under way: at most `most`.
  [[nodiscard]] bool has_room_for(std::size_t bytes) const noexcept { return bytes <= most - held_; }

  /// Whether copies under way hold more than half of the memory that there is without another allocation.
  [[nodiscard]] bool is_half_used() const noexcept { return !buffers_.empty() && 2 * used_ > buffers_.back().size(); }

  /// `from` may change when this returns.
  void upload(const std::byte* from, std::byte* to, std::size_t bytes, StreamRef stream) {
    std::byte* const part = take(bytes);
    std::memcpy(part, from, bytes);
    cuda::check(cudaMemcpyAsync(to, part, bytes, cudaMemcpyHostToDevice, stream.get()), "cudaMemcpyAsync to the GPU",
                stream.device());
    note_work(stream.device(), copy_work);
  }
  /// `arrival`, where there is one, holds `to` and learns what became of it.
  void download(const std::byte* from, std::byte* to, std::size_t bytes, StreamRef stream,
                std::shared_ptr<HostCopyState> arrival = nullptr) {
    std::byte* const part = take(bytes);
    cuda::check(cudaMemcpyAsync(part, from, bytes, cudaMemcpyDeviceToHost, stream.get()), "cudaMemcpyAsync to the host",
                stream.device());
    note_work(stream.device(), copy_work);
    downloads_.push_back({put_++, part, to, bytes, std::move(arrival)});
  }

  /// Everything put on the stream is done: writes what came to where it belongs.
  void deliver() {
    for (const Download& each : downloads_) {
      if (each.to != nullptr) std::memcpy(each.to, each.part, each.bytes);
      if (each.arrival != nullptr) each.arrival->state = HostCopyState::State::there;
    }
    downloads_.clear();
    if (buffers_.size() > 1) buffers_.erase(buffers_.begin(), buffers_.end() - 1);  // the last is the largest
    used_ = held_ = 0;
  }

  /// How many downloads there were.
  [[nodiscard]] std::uint64_t downloads() const noexcept { return put_; }

  /// Downloads after so many do not come any more, because of `why`, if there is something; their copies may go on.
  void cancel(std::uint64_t since = 0, const std::exception_ptr& why = nullptr) noexcept {
    for (; !downloads_.empty() && downloads_.back().number >= since; downloads_.pop_back()) {
      HostCopyState* const arrival = downloads_.back().arrival.get();
      if (arrival == nullptr) continue;
      arrival->state = HostCopyState::State::lost;
      arrival->why = why;
    }
  }
  /// The same of downloads whose places nobody holds.
  void drop(std::uint64_t since) noexcept {
    for (Download& each : downloads_)
      if (each.number >= since && each.arrival == nullptr) each.to = nullptr;
  }

 private:
  struct Download {
    std::uint64_t number;
    const std::byte* part;
    std::byte* to;  // null where it went away
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
  std::size_t used_ = 0;  // of the last
  std::size_t held_ = 0;  // of all
  std::vector<Download> downloads_;
  std::uint64_t put_ = 0;
};

}  // namespace dist::cuda
