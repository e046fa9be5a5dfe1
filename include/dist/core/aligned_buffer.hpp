#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace dist {

/// Bytes per cache line, and the alignment of all buffers that the library owns: one AVX-512 register.
inline constexpr std::size_t cache_line = 64;

/// Owns `size()` value-initialised elements of a trivial type, aligned to a cache line. Move-only. Throws
/// std::bad_array_new_length if the size in bytes overflows, like `new T[size]`.
template <class T>
class AlignedBuffer {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>,
                "AlignedBuffer holds plain numbers: its element type must be trivially copyable");

 public:
  AlignedBuffer() = default;
  /// Allocates `size` elements and sets them to `T{}`.
  explicit AlignedBuffer(std::size_t size)
      : data_(size == 0 ? nullptr : static_cast<T*>(::operator new (bytes_of(size), std::align_val_t{cache_line}))),
        size_(size) {
    for (std::size_t i = 0; i < size_; ++i) ::new (static_cast<void*>(data_ + i)) T{};
  }
  /// Takes the memory of `other`, which is empty afterwards.
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  /// Exchanges the memory of both buffers.
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  /// Takes over the memory of another buffer, and reinterprets its elements as bytes or its bytes as elements.
  template <class U>
    requires(std::is_same_v<T, std::byte> != std::is_same_v<U, std::byte>)
  explicit AlignedBuffer(AlignedBuffer<U>&& other) noexcept
      : data_(reinterpret_cast<T*>(other.data())), size_(other.size() * sizeof(U) / sizeof(T)) {
    std::move(other).release();
  }
  ~AlignedBuffer() {
    if (data_ != nullptr) ::operator delete (data_, std::align_val_t{cache_line});
  }

  /// The address of the first element; null without elements.
  [[nodiscard]] T* data() noexcept { return data_; }
  /// The address of the first element; null without elements.
  [[nodiscard]] const T* data() const noexcept { return data_; }
  /// The number of elements.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Gives up ownership of the memory without freeing it.
  void release() && noexcept {
    data_ = nullptr;
    size_ = 0;
  }

 private:
  static std::size_t bytes_of(std::size_t size) {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(size, sizeof(T), &bytes)) throw std::bad_array_new_length();
    return bytes;
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace dist
