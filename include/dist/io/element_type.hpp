/// The types of elements in files, as run-time values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <dist/core/memory_space.hpp>

namespace dist::io {

/// The type of an element: bool, integer or floating-point number, with its bits.
enum class ElementType : unsigned char { boolean, u8, i8, u16, i16, u32, i32, u64, i64, f16, bf16, f32, f64 };

/// All element types.
inline constexpr ElementType all_element_types[] = {
    ElementType::boolean, ElementType::u8,  ElementType::i8,  ElementType::u16, ElementType::i16,
    ElementType::u32,     ElementType::i32, ElementType::u64, ElementType::i64, ElementType::f16,
    ElementType::bf16,    ElementType::f32, ElementType::f64,
};

namespace detail {

struct ElementTypeFacts {
  std::string_view name;
  std::size_t bytes;
};
/// Indexed by ElementType.
inline constexpr ElementTypeFacts element_type_facts[] = {
    {"bool", 1}, {"u8", 1},  {"i8", 1},  {"u16", 2},  {"i16", 2}, {"u32", 4}, {"i32", 4},
    {"u64", 8},  {"i64", 8}, {"f16", 2}, {"bf16", 2}, {"f32", 4}, {"f64", 8},
};

}  // namespace detail

/// Returns the short name of the type, like `dtype_name`: "f32".
[[nodiscard]] constexpr std::string_view to_string(ElementType type) noexcept {
  return detail::element_type_facts[static_cast<std::size_t>(type)].name;
}
/// Returns the size of an element in bytes.
[[nodiscard]] constexpr std::size_t bytes_of(ElementType type) noexcept {
  return detail::element_type_facts[static_cast<std::size_t>(type)].bytes;
}

/// Returns the type with this short name, or nothing.
[[nodiscard]] constexpr std::optional<ElementType> element_type_named(std::string_view name) noexcept {
  for (const ElementType type : all_element_types)
    if (to_string(type) == name) return type;
  return std::nullopt;
}

/// The element type of `T`.
template <class T>
inline constexpr ElementType element_type = *element_type_named(dtype_name<T>);

/// Calls `function.template operator()<T>()` with the C++ type `T` of elements of `type`.
decltype(auto) with_element_type(ElementType type, auto&& function) {
  switch (type) {
    case ElementType::boolean:
      return function.template operator()<bool>();
    case ElementType::u8:
      return function.template operator()<std::uint8_t>();
    case ElementType::i8:
      return function.template operator()<std::int8_t>();
    case ElementType::u16:
      return function.template operator()<std::uint16_t>();
    case ElementType::i16:
      return function.template operator()<std::int16_t>();
    case ElementType::u32:
      return function.template operator()<std::uint32_t>();
    case ElementType::i32:
      return function.template operator()<std::int32_t>();
    case ElementType::u64:
      return function.template operator()<std::uint64_t>();
    case ElementType::i64:
      return function.template operator()<std::int64_t>();
    case ElementType::f16:
      return function.template operator()<Float16>();
    case ElementType::bf16:
      return function.template operator()<BFloat16>();
    case ElementType::f32:
      return function.template operator()<float>();
    case ElementType::f64:
      break;
  }
  return function.template operator()<double>();
}

}  // namespace dist::io
