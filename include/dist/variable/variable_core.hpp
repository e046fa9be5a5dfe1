#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include <dist/core/algorithms.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/shape.hpp>
#include <dist/device/arena.hpp>

namespace dist::detail {

/// Throw ShapeMismatch for the variable `name` of shape `shape`: if a value has another shape; if it does not have one
/// element.
[[noreturn]] void refuse_shape(std::string_view name, const Shape& shape, const Shape& given,
                               std::string_view suggestion);
[[noreturn]] void refuse_single_value(std::string_view name, const Shape& shape);
/// Throw the errors of the variable `name`: if the replica is out of range; if the context belongs to another strategy
/// (also for buffers).
[[noreturn]] void refuse_replica(const std::string& name, std::size_t replica, std::size_t replicas,
                                 const std::string& strategy);
[[noreturn]] void refuse_strategy(bool is_variable, const std::string& name, const std::string& strategy);

/// The type-independent part of a variable or buffer: name, shape, and a slice of a strategy's memory with the same
/// number of elements on every replica, initially zero. Shares ownership of the memory. Move-only.
template <class Memory>
class VariableCore {
  /// Always void, but dependent on Memory: programs without variables do not instantiate the pointer.
  using Remote = std::conditional_t<std::is_void_v<Memory>, Memory, void>;

 public:
  /// Throws OutOfMemory.
  VariableCore(const std::shared_ptr<Memory>& memory, const Shape& shape, std::string name, std::size_t element_size,
               bool trainable = false);
  VariableCore(VariableCore&& other) noexcept;
  VariableCore& operator=(VariableCore&& other) noexcept;
  ~VariableCore();

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// The offset in bytes of each replica's copy in its region of the memory.
  [[nodiscard]] std::size_t offset() const noexcept { return offset_; }
  /// The memory of the copies; it identifies the strategy.
  [[nodiscard]] const std::shared_ptr<Memory>& memory() const noexcept { return memory_; }

  /// Returns a copy in host-accessible memory as bytes.
  [[nodiscard]] std::span<std::byte> bytes(std::size_t local_replica) const {
    return {memory_->at(local_replica, offset_), bytes_};
  }
  /// Sets all elements of the first copy, in host-accessible memory, to the bytes of `element`.
  void fill(std::span<const std::byte> element) const;

 protected:
  /// True if optimizers may change it (spec G03).
  [[nodiscard]] bool trainable() const noexcept { return trainable_; }
  /// State of a RemoteStore; null under other strategies.
  [[nodiscard]] const std::shared_ptr<Remote>& remote() const noexcept { return remote_; }
  void set_remote(std::shared_ptr<Remote> remote) noexcept { remote_ = std::move(remote); }

  template <class T, MemorySpace Where>
  [[nodiscard]] ::dist::SpanIn<T, Where> on(std::size_t local_replica) const noexcept(noexcept(memory_->at(0, 0))) {
    return {reinterpret_cast<T*>(memory_->at(local_replica, offset_)), size_};
  }

 private:
  /// Returns the product; on overflow the largest number, which cannot be allocated.
  [[nodiscard]] static std::size_t bytes_of(std::size_t elements, std::size_t element_size) noexcept {
    std::size_t bytes = 0;
    return __builtin_mul_overflow(elements, element_size, &bytes) ? static_cast<std::size_t>(-1) : bytes;
  }

  std::shared_ptr<Memory> memory_;
  std::size_t size_;
  std::size_t bytes_;
  std::size_t offset_;
  Shape shape_;
  std::string name_;
  bool trainable_;
  std::shared_ptr<Remote> remote_;
};

template <class Memory>
VariableCore<Memory>::VariableCore(const std::shared_ptr<Memory>& memory, const Shape& shape, std::string name,
                                   std::size_t element_size, bool trainable)
    : memory_(memory),
      size_(shape.elements()),
      bytes_(bytes_of(size_, element_size)),
      offset_(memory_->allocate(bytes_)),
      shape_(shape),
      name_(std::move(name)),
      trainable_(trainable) {}

template <class Memory>
VariableCore<Memory>::VariableCore(VariableCore&& other) noexcept = default;

template <class Memory>
VariableCore<Memory>& VariableCore<Memory>::operator=(VariableCore&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(size_, other.size_);
  std::swap(bytes_, other.bytes_);
  std::swap(offset_, other.offset_);
  std::swap(shape_, other.shape_);
  std::swap(name_, other.name_);
  std::swap(trainable_, other.trainable_);
  std::swap(remote_, other.remote_);
  return *this;
}

template <class Memory>
VariableCore<Memory>::~VariableCore() {
  if (memory_ != nullptr) memory_->release(offset_, bytes_);
}

template <class Memory>
void VariableCore<Memory>::fill(std::span<const std::byte> element) const {
  const std::span<std::byte> all = bytes(0);
  for (std::size_t done = 0; done < all.size();) {
    const std::byte* const from = done == 0 ? element.data() : all.data();
    const std::size_t count = done == 0 ? element.size() : std::min(done, all.size() - done);
    std::memcpy(all.data() + done, from, count);
    done += count;
  }
}

#ifdef DIST_COMPILED
extern template class VariableCore<Arena>;
#endif

}  // namespace dist::detail

#ifndef DIST_COMPILED
#include <dist/variable/variable_core.ipp>
#endif
