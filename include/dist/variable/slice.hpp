#pragma once

#include <cstddef>
#include <utility>

#include <dist/core/light_memory.hpp>
#include <dist/core/memory_space.hpp>

namespace dist {

/// Owns one slice of a strategy's memory, which lies in `Where`: the same `elements` elements of type T on every replica,
/// zero at first. Keeps the memory alive. Moves, does not copy.
template <class T, class Memory, MemorySpace Where = HostMemory>
class Slice {
 public:
  /// Throws OutOfMemory.
  Slice(std::shared_ptr<Memory> memory, std::size_t elements)
      : memory_(std::move(memory)), elements_(elements), offset_(memory_->allocate(bytes_of(elements))) {}
  Slice(Slice&& other) noexcept = default;
  Slice& operator=(Slice&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(elements_, other.elements_);
    std::swap(offset_, other.offset_);
    return *this;
  }
  ~Slice() {
    if (memory_ != nullptr) memory_->release(offset_, bytes_of(elements_));
  }

  [[nodiscard]] const std::shared_ptr<Memory>& memory() const noexcept { return memory_; }
  [[nodiscard]] std::size_t replicas() const noexcept { return memory_->replicas(); }
  [[nodiscard]] std::size_t size() const noexcept { return elements_; }
  /// Where the slice starts in every region of the memory.
  [[nodiscard]] std::size_t offset() const noexcept { return offset_; }
  [[nodiscard]] SpanIn<T, Where> on(std::size_t local_replica) const noexcept(noexcept(memory_->at(0, 0))) {
    return {reinterpret_cast<T*>(memory_->at(local_replica, offset_)), elements_};
  }

 private:
  /// The greatest number where there is no such number of bytes, which no memory gives.
  static std::size_t bytes_of(std::size_t elements) noexcept {
    std::size_t bytes = 0;
    return __builtin_mul_overflow(elements, sizeof(T), &bytes) ? static_cast<std::size_t>(-1) : bytes;
  }

  std::shared_ptr<Memory> memory_;
  std::size_t elements_;
  std::size_t offset_;
};

}  // namespace dist
