#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <dist/core/float16.hpp>
#include <dist/core/memory_space.hpp>
#include <dist/core/reduce_op.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/text.hpp>

namespace dist::hlo {

/// The extent of a batch axis: the rows of a replica's batch, fixed while tracing.
inline constexpr std::size_t batch = static_cast<std::size_t>(-1);

/// StableHLO's element types with a C++ equivalent.
enum class ElementKind : std::uint8_t { i1, i8, i16, i32, i64, ui8, ui16, ui32, ui64, f16, bf16, f32, f64 };

/// The element type for the C++ type T.
template <class T>
inline constexpr ElementKind element_kind = [] {
  constexpr auto wider_by = [](ElementKind narrowest) {
    constexpr int steps = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return static_cast<ElementKind>(static_cast<int>(narrowest) + steps);
  };
  if constexpr (std::same_as<T, bool>) return ElementKind::i1;
  if constexpr (std::same_as<T, Float16>) return ElementKind::f16;
  if constexpr (std::same_as<T, BFloat16>) return ElementKind::bf16;
  if constexpr (std::floating_point<T>) return sizeof(T) == 4 ? ElementKind::f32 : ElementKind::f64;
  static_assert(std::integral<T> || Floating<T>, "the elements of traced arrays are numbers");
  return wider_by(std::signed_integral<T> ? ElementKind::i8 : ElementKind::ui8);
}();

/// True for types of floating-point numbers.
[[nodiscard]] constexpr bool is_floating(ElementKind kind) noexcept { return kind >= ElementKind::f16; }

/// StableHLO's name: "f32", "i64", "ui8", "i1".
[[nodiscard]] std::string_view name_of(ElementKind kind) noexcept;

/// The type of a value in a program.
struct Type {
  ElementKind element;  ///< the type of the elements
  Shape shape;          ///< the extents; no axes for a number

  friend bool operator==(const Type&, const Type&) = default;
};

/// StableHLO's notation: `tensor<64x10xf32>`.
[[nodiscard]] std::string to_string(const Type& type);

/// StableHLO's notation of a number, without loss of precision.
[[nodiscard]] std::string literal(double value, ElementKind kind);
/// StableHLO's notation of a number of type T.
template <class T>
[[nodiscard]] std::string literal(T value) {
  if constexpr (std::same_as<T, bool>)
    return value ? "true" : "false";
  else if constexpr (std::same_as<T, double>)
    return literal(value, ElementKind::f64);
  else if constexpr (Floating<T>)
    return literal(static_cast<double>(static_cast<float>(value)), element_kind<T>);
  else
    return std::to_string(value);
}

}  // namespace dist::hlo

#ifndef DIST_COMPILED
#include <dist/hlo/type.ipp>
#endif
