#include <dist/data/zip.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <tuple>
#include <type_traits>
#include <vector>

#include <data/sequences.hpp>
#include <dist/data/take_skip.hpp>

using dist::data::Cardinality;
using dist::data::enumerate;
using dist_test::collect;
using dist_test::Counting;

TEST_CASE("enumerate numbers the elements from a start value, in every pass") {
  using Pair = std::tuple<std::int64_t, std::uint64_t>;
  const auto numbered = dist_test::EpochNumbers{2} | enumerate(5);
  static_assert(std::is_same_v<decltype(numbered)::Element, Pair>);
  CHECK(collect(numbered, 8) == std::vector<Pair>{{5, 8}, {6, 8}});
  CHECK(collect(numbered, 9) == std::vector<Pair>{{5, 9}, {6, 9}});
  const auto from_zero = collect(Counting{3} | dist::data::repeat(2) | enumerate());
  REQUIRE(from_zero.size() == 6);
  for (std::size_t i = 0; i < 6; ++i)
    CHECK(from_zero[i] == std::tuple{static_cast<std::int64_t>(i), static_cast<int>(i % 3)});
}

TEST_CASE("enumerate keeps the cardinality") {
  CHECK((Counting{3} | enumerate()).cardinality() == Cardinality::known(3));
  CHECK((Counting{3} | dist::data::repeat() | enumerate()).cardinality() == Cardinality::infinite());
  CHECK((Counting{3, Cardinality::unknown()} | enumerate()).cardinality() == Cardinality::unknown());
}
