#include <dist/variable/element_update.hpp>

#include <concepts>
#include <cstdint>
#include <limits>

#include <dist/comm/element_update.hpp>
#include <dist/core/float16.hpp>
#include <dist/core/reduce_op.hpp>

#include <doctest/doctest.h>

using namespace dist::detail;

TEST_CASE("an update computes the new element from the old and the given one") {
  CHECK(Assign{}(7.0f, 2.0f) == 2.0f);
  CHECK(Subtract{}(7.0f, 2.0f) == 5.0f);
  CHECK(Divide{}(7.0f, 2.0f) == 3.5f);
}

TEST_CASE("a write is an update of any element") {
  static_assert(dist::ElementUpdate<WriteElement<dist::Sum>, std::int8_t>);
  CHECK(WriteElement<Subtract>{}(3, 7.0f, 2.0f) == 5.0f);
}

TEST_CASE("the result has the element type, even if C++ would widen it") {
  static_assert(std::same_as<decltype(Subtract{}(std::int8_t{1}, std::int8_t{2})), std::int8_t>);
  CHECK(Subtract{}(std::uint8_t{1}, std::uint8_t{2}) == 255);
  CHECK(static_cast<float>(Subtract{}(dist::BFloat16{5}, dist::BFloat16{3})) == 2.0f);
  CHECK(Assign{}(false, true));
}

TEST_CASE("integer division truncates, and the minimum divided by -1 wraps around") {
  CHECK(Divide{}(7, 2) == 3);
  CHECK(Divide{}(-7, 2) == -3);
  CHECK(Divide{}(7, -1) == -7);
  CHECK(Divide{}(7U, 2U) == 3U);
  CHECK(Divide{}(std::numeric_limits<std::int64_t>::min(), std::int64_t{-1}) ==
        std::numeric_limits<std::int64_t>::min());
  CHECK(Divide{}(std::int8_t{-128}, std::int8_t{-1}) == -128);
}
