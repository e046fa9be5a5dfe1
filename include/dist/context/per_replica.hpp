#pragma once

#include <concepts>
#include <cstddef>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include <dist/core/contract.hpp>
#include <dist/core/text.hpp>
#include <dist/core/type_traits.hpp>

namespace dist {

/// One value per replica of this process: value `i` belongs to local replica `i` (spec F01). Returned by `run` and
/// distributed datasets; passed to `run`, each replica receives its own value.
///
/// Up to eight values are inline, so training steps do not allocate memory.
template <class T>
class PerReplica {
 public:
  /// The type of a replica's value.
  using Value = T;

  PerReplica() {}  // not defaulted: that would zero the storage
  /// Creates `count` value-initialised values.
  explicit PerReplica(std::size_t count) {
    create(count, [](std::size_t) { return T(); });
  }
  /// Creates the values `make(0)`, `make(1)`, …
  template <std::invocable<std::size_t> Make>
  PerReplica(std::size_t count, Make make) {
    create(count, make);
  }
  /// One value per replica of this process: `PerReplica<float>::of(1, 2)`.
  template <class... Values>
    requires(std::constructible_from<T, Values>&&...)
  [[nodiscard]] static PerReplica of(Values&&... values) {
    PerReplica made;
    made.reserve(sizeof...(Values));
    [[maybe_unused]] const auto append = [&](auto&& value) {
      ::new (static_cast<void*>(static_cast<T*>(made.storage()) + made.size_))
          T(static_cast<T>(std::forward<decltype(value)>(value)));
      ++made.size_;
    };
    (append(std::forward<Values>(values)), ...);
    return made;
  }
  /// Copies every value, if `T` is copyable.
  PerReplica(const PerReplica& other) requires std::is_copy_constructible_v<T> {
    create(other.size_, [&](std::size_t i) -> const T& { return other[i]; });
  }
  /// Moves the values. More than eight are moved by one pointer, and `other` is then empty.
  PerReplica(PerReplica&& other) noexcept(std::is_nothrow_move_constructible_v<T>) { take(other); }
  /// Replaces all values, and their number.
  PerReplica& operator=(PerReplica other) noexcept(std::is_nothrow_move_constructible_v<T>) {
    destroy();
    take(other);
    return *this;
  }
  ~PerReplica() { destroy(); }

  /// The number of values: one for each replica of this process.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// The value of a local replica, which must be less than `size()`.
  [[nodiscard]] T& operator[](std::size_t local_replica) noexcept {
    DIST_EXPECT(local_replica < size());
    return begin()[local_replica];
  }
  /// The value of a local replica, which must be less than `size()`.
  [[nodiscard]] const T& operator[](std::size_t local_replica) const noexcept {
    DIST_EXPECT(local_replica < size());
    return begin()[local_replica];
  }

  /// The value of the first local replica; the others follow it in memory.
  [[nodiscard]] T* begin() noexcept { return std::launder(static_cast<T*>(storage())); }
  /// The end of the values.
  [[nodiscard]] T* end() noexcept { return begin() + size_; }
  /// The value of the first local replica; the others follow it in memory.
  [[nodiscard]] const T* begin() const noexcept { return std::launder(static_cast<const T*>(storage())); }
  /// The end of the values.
  [[nodiscard]] const T* end() const noexcept { return begin() + size_; }
  /// The values in the order of replicas, valid until the next assignment.
  [[nodiscard]] std::span<const T> values() const noexcept { return {begin(), size_}; }

  [[nodiscard]] friend bool operator==(const PerReplica& a, const PerReplica& b) requires std::equality_comparable<T> {
    if (a.size_ != b.size_) return false;
    for (std::size_t i = 0; i < a.size_; ++i)
      if (!(a[i] == b[i])) return false;
    return true;
  }

 private:
  static constexpr std::size_t inline_capacity = 8;

  void* storage() noexcept { return heap_ != nullptr ? heap_ : inline_; }
  const void* storage() const noexcept { return heap_ != nullptr ? heap_ : inline_; }

  void reserve(std::size_t count) {
    if (count > inline_capacity) heap_ = ::operator new (count * sizeof(T), std::align_val_t{alignof(T)});
  }
  template <class Make>
  void create(std::size_t count, Make&& make) {
    reserve(count);
    try {
      for (; size_ < count; ++size_) ::new (static_cast<void*>(static_cast<T*>(storage()) + size_)) T(make(size_));
    } catch (...) {
      destroy();
      throw;
    }
  }

  void take(PerReplica& other) noexcept(std::is_nothrow_move_constructible_v<T>) {
    if (other.heap_ != nullptr) {
      heap_ = std::exchange(other.heap_, nullptr);
      size_ = std::exchange(other.size_, 0);
    } else {
      create(other.size_, [&](std::size_t i) -> T&& { return std::move(other[i]); });
    }
  }

  void destroy() noexcept {
    while (size_ > 0) begin()[--size_].~T();
    if (heap_ != nullptr) ::operator delete (std::exchange(heap_, nullptr), std::align_val_t{alignof(T)});
  }

  std::size_t size_ = 0;
  void* heap_ = nullptr;
  alignas(T) std::byte inline_[inline_capacity * sizeof(T)];
};

/// True if `T` is a PerReplica.
template <class T>
inline constexpr bool is_per_replica = detail::is_specialization<T, PerReplica>;

namespace detail {
template <class T>
concept WritableAsText = requires(const T& value) {
  concat(value);
};
}  // namespace detail

/// "[1, 2]", in the order of replicas.
template <detail::WritableAsText T>
[[nodiscard]] std::string to_string(const PerReplica<T>& values) {
  std::string joined = "[";
  for (std::size_t replica = 0; replica < values.size(); ++replica)
    joined += concat(replica == 0 ? "" : ", ", values[replica]);
  return joined + "]";
}

}  // namespace dist
