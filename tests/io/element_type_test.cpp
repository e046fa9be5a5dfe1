#include <dist/io/element_type.hpp>

#include <doctest/doctest.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>

#include <dist/core/memory_space.hpp>

using dist::io::all_element_types;
using dist::io::bytes_of;
using dist::io::element_type;
using dist::io::element_type_named;
using dist::io::ElementType;
using dist::io::to_string;
using dist::io::with_element_type;

TEST_CASE("every element type has a name, a size and a C++ type, and is found by name and type") {
  std::size_t types = 0;
  for (const ElementType type : all_element_types) {
    CHECK(static_cast<std::size_t>(type) == types++);
    with_element_type(type, [&]<class T>() {
      CHECK(to_string(type) == dist::dtype_name<T>);
      CHECK(bytes_of(type) == sizeof(T));
      CHECK(element_type<T> == type);
    });
    CHECK(element_type_named(to_string(type)) == type);
  }
  CHECK(types == 13);
  CHECK_FALSE(element_type_named("f8"));
  CHECK_FALSE(element_type_named(""));
}

TEST_CASE("C++ types with the same representation have the same element type") {
  static_assert(element_type<long long> == ElementType::i64);
  static_assert(element_type<long> == (sizeof(long) == 8 ? ElementType::i64 : ElementType::i32));
  static_assert(element_type<unsigned char> == ElementType::u8);
  CHECK(with_element_type(ElementType::bf16, []<class T>() { return std::same_as<T, dist::BFloat16>; }));
}
