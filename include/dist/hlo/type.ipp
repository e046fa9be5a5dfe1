#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdio>

#include <dist/hlo/type.hpp>

namespace dist::hlo {

DIST_INLINE std::string_view name_of(ElementKind kind) noexcept {
  constexpr std::array<std::string_view, 13> names{"i1",   "i8",   "i16", "i32",  "i64", "ui8", "ui16",
                                                   "ui32", "ui64", "f16", "bf16", "f32", "f64"};
  return names[static_cast<std::size_t>(kind)];
}

DIST_INLINE std::string to_string(const Type& type) {
  std::string name = "tensor<";
  for (const std::size_t extent : type.shape.extents()) name.append(std::to_string(extent)).push_back('x');
  return name.append(name_of(type.element)).append(">");
}

DIST_INLINE std::string literal(double value, ElementKind kind) {
  char digits[40];
  if (!is_floating(kind)) {
    std::snprintf(digits, sizeof digits, "%.0f", value);
    return kind == ElementKind::i1 ? (value != 0 ? "true" : "false") : digits;
  }
  if (std::isfinite(value)) {
    std::snprintf(digits, sizeof digits, "%.17e", value);
    return digits;
  }
  // StableHLO writes infinities and NaN as bits, in full width.
  const auto as_float = static_cast<float>(value);
  if (kind == ElementKind::f64)
    std::snprintf(digits, sizeof digits, "0x%016llX",
                  static_cast<unsigned long long>(std::bit_cast<std::uint64_t>(value)));
  else if (kind == ElementKind::f32)
    std::snprintf(digits, sizeof digits, "0x%08X", std::bit_cast<std::uint32_t>(as_float));
  else
    std::snprintf(digits, sizeof digits, "0x%04X",
                  static_cast<unsigned>(kind == ElementKind::f16 ? std::bit_cast<std::uint16_t>(Float16{as_float})
                                                                 : std::bit_cast<std::uint16_t>(BFloat16{as_float})));
  return digits;
}

}  // namespace dist::hlo
