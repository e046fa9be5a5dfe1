#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include <dist/core/error.hpp>
#include <dist/device/cuda/api.hpp>
#include <dist/device/cuda/buffer.hpp>
#include <dist/device/cuda/queue.cuh>
#include <dist/device/cuda/selected_device.hpp>

namespace dist::nn::cuda {

/// Uninitialised GPU memory for the work of one queue. The destructor waits for the queue, and leaks the memory if
/// the wait exceeds its deadline.
template <class T>
class Memory {
 public:
  Memory() = default;
  /// Throws OutOfMemory.
  Memory(const dist::cuda::Queue& queue, std::size_t count)
      : held_(std::in_place, queue, dist::cuda::DeviceBuffer{queue.stream().device(), count * sizeof(T)}, count) {}
  /// Takes over the elements.
  Memory(Memory&& other) noexcept { std::swap(held_, other.held_); }
  /// Takes over the elements.
  Memory& operator=(Memory&& other) noexcept {
    std::swap(held_, other.held_);
    return *this;
  }
  ~Memory() {
    if (!held_) return;
    try {
      held_->queue.wait();
    } catch (const DeadlineExceeded&) {
      dist::cuda::leave_behind(std::move(held_->buffer));
    } catch (const Error&) {
    }
  }

  /// Ensures room for `count` elements. To grow, it waits for the queue's earlier work, and discards the contents.
  /// Throws OutOfMemory, which leaves it empty.
  void reserve(const dist::cuda::Queue& queue, std::size_t count) {
    if (count <= (held_ ? held_->count : 0)) return;
    *this = Memory{};  // frees first, so both need not fit
    *this = Memory{queue, count};
  }

  /// A GPU address; null if empty.
  [[nodiscard]] T* data() const noexcept { return held_ ? reinterpret_cast<T*>(held_->buffer.data()) : nullptr; }

 private:
  struct Held {
    Held(const dist::cuda::Queue& of, dist::cuda::DeviceBuffer&& made, std::size_t of_elements)
        : queue(of), buffer(std::move(made)), count(of_elements) {}
    dist::cuda::Queue queue;
    dist::cuda::DeviceBuffer buffer;
    std::size_t count;
  };
  std::optional<Held> held_;
};

}  // namespace dist::nn::cuda
