#include <dist/core/memory_space.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

using dist::dtype_name;

TEST_CASE("every number type has its short name") {
  CHECK(dtype_name<dist::Float16> == "f16");
  CHECK(dtype_name<dist::BFloat16> == "bf16");
  CHECK(dtype_name<float> == "f32");
  CHECK(dtype_name<double> == "f64");
  CHECK(dtype_name<std::int8_t> == "i8");
  CHECK(dtype_name<std::int16_t> == "i16");
  CHECK(dtype_name<std::int32_t> == "i32");
  CHECK(dtype_name<std::int64_t> == "i64");
  CHECK(dtype_name<std::uint8_t> == "u8");
  CHECK(dtype_name<std::uint16_t> == "u16");
  CHECK(dtype_name<std::uint32_t> == "u32");
  CHECK(dtype_name<std::uint64_t> == "u64");
  CHECK(dtype_name<bool> == "bool");
}

TEST_CASE("types with the same width and sign share a name") {
  static_assert(sizeof(long) != 8 || dtype_name<long> == dtype_name<long long>);
  static_assert(sizeof(std::size_t) != 8 || dtype_name<std::size_t> == "u64");
  CHECK(dtype_name<unsigned char> == dtype_name<std::uint8_t>);
}

TEST_CASE("byte and bool have different names") { CHECK(dtype_name<bool> != dtype_name<std::uint8_t>); }
