#include <dist/core/type_traits.hpp>

#include <doctest/doctest.h>

#include <string_view>

namespace {
struct Mine {};
}  // namespace

TEST_CASE("different types have different names") {
  CHECK(dist::detail::type_name<float>() == "float");
  CHECK(dist::detail::type_name<const int*>().find("int") != std::string_view::npos);
  CHECK(dist::detail::type_name<Mine>().find("Mine") != std::string_view::npos);
  CHECK(dist::detail::type_name<long>() != dist::detail::type_name<int>());
}
