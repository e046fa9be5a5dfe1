#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>

#include <dist/core/bfloat16.hpp>
#include <dist/core/float16.hpp>

namespace dist {

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
