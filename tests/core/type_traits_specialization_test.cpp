#include <dist/core/type_traits.hpp>

#include <doctest/doctest.h>

using dist::detail::is_specialization;

template <class>
struct One {};
template <class, class...>
struct Several {};

TEST_CASE("is_specialization is true for a type's own template only") {
  CHECK(is_specialization<One<int>, One>);
  CHECK(is_specialization<Several<int>, Several>);
  CHECK(is_specialization<Several<int, char>, Several>);
  CHECK_FALSE(is_specialization<int, One>);
  CHECK_FALSE(is_specialization<Several<int>, One>);
  CHECK_FALSE(is_specialization<const One<int>, One>);
}
