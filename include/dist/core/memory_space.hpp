#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

#include <dist/core/config.hpp>
#include <dist/core/contract.hpp>
#include <dist/core/float16.hpp>

namespace dist {

/// Memory space of spans and views, as part of their types. The host reads and writes elements only if
/// `host_accessible`; otherwise it passes spans to a queue of the device.
template <class P>
concept MemorySpace = requires {
  { P::host_accessible } -> std::convertible_to<bool>;
};

/// Memory of the process.
struct HostMemory {
  static constexpr bool host_accessible = true;
};

/// Memory that is accessible where a queue runs function bodies.
struct BodyMemory {
  static constexpr bool host_accessible = true;
};

namespace detail {
/// Rejects host code that accesses elements in device memory, with a readable compile error.
template <class Where>
DIST_HD constexpr void require_host_access() {
  static_assert(Where::host_accessible,
                "this is memory of a device, which the host cannot touch: give the work to replica.for_each, or copy "
                "the elements with replica.queue().copy and wait");
}
}  // namespace detail

/// Contiguous elements in memory that the host cannot access: a std::span without element access.
template <class T, MemorySpace Where>
class DeviceSpan {
  static_assert(!Where::host_accessible, "memory that the host may touch is a std::span");

 public:
  using element_type = T;
  using value_type = std::remove_cv_t<T>;

  DeviceSpan() = default;
  /// `data` points to `size` elements in `Where`.
  DIST_HD constexpr DeviceSpan(T* data, std::size_t size) noexcept : data_(data), size_(size) {}
  /// A span of mutable elements converts to a span of constant elements.
  template <class Mutable>
    requires(std::is_const_v<T>&& std::is_same_v<const Mutable, T>)
  DIST_HD constexpr DeviceSpan(DeviceSpan<Mutable, Where> other) noexcept : data_(other.data()), size_(other.size()) {}

  /// An address on the device, for device code.
  [[nodiscard]] DIST_HD constexpr T* data() const noexcept { return data_; }
  [[nodiscard]] DIST_HD constexpr std::size_t size() const noexcept { return size_; }
  [[nodiscard]] constexpr std::size_t size_bytes() const noexcept { return size_ * sizeof(T); }
  [[nodiscard]] DIST_HD constexpr bool empty() const noexcept { return size_ == 0; }

  [[nodiscard]] constexpr DeviceSpan subspan(std::size_t offset, std::size_t count = std::dynamic_extent) const {
    DIST_EXPECT(offset <= size_);
    if (count == std::dynamic_extent) count = size_ - offset;
    DIST_EXPECT(count <= size_ - offset);
    return {data_ + offset, count};
  }
  [[nodiscard]] constexpr DeviceSpan first(std::size_t count) const { return subspan(0, count); }

  /// Rejects element access, which std::span has.
  template <std::integral Index>
  T& operator[](Index) const {
    detail::require_host_access<Where>();
    return *data_;
  }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

namespace detail {
template <class T, class Where>
struct SpanIn {
  using Type = DeviceSpan<T, Where>;
};
template <class T, class Where>
  requires(Where::host_accessible)
struct SpanIn<T, Where> {
  using Type = std::span<T>;
};

/// True if the elements of a span or a view are in device memory, which the host cannot access.
template <class Range>
inline constexpr bool is_on_device = false;
template <class T, class Where>
inline constexpr bool is_on_device<DeviceSpan<T, Where>> = true;

/// The memory space of any range, for `require_host_access`.
template <class Range>
struct MemorySpaceOf {
  static constexpr bool host_accessible = !is_on_device<std::remove_cvref_t<Range>>;
};
}  // namespace detail

/// The span type for elements in `Where`: std::span if the host can access them.
template <class T, MemorySpace Where>
using SpanIn = typename detail::SpanIn<T, Where>::Type;

/// The short name of a number type in messages and files: "f32", "bf16", "i64", "u8", "bool".
template <class T>
inline constexpr std::string_view dtype_name = [] {
  constexpr std::size_t log_bytes = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
  if constexpr (std::same_as<T, bool>) {
    return std::string_view{"bool"};
  } else if constexpr (std::same_as<T, Float16>) {
    return std::string_view{"f16"};
  } else if constexpr (std::same_as<T, BFloat16>) {
    return std::string_view{"bf16"};
  } else if constexpr (std::floating_point<T>) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "floating-point elements are float or double");
    return sizeof(T) == 4 ? std::string_view{"f32"} : std::string_view{"f64"};
  } else {
    static_assert(std::integral<T>, "only number types have a dtype_name");
    constexpr std::string_view names[2][4] = {{"u8", "u16", "u32", "u64"}, {"i8", "i16", "i32", "i64"}};
    return names[std::signed_integral<T> ? 1 : 0][log_bytes];
  }
}();

}  // namespace dist
