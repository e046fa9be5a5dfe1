#include <dist/data/range.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include <data/sequences.hpp>

using dist::data::Cardinality;
using dist::data::range;
using dist_test::collect;
using Numbers = std::vector<std::int64_t>;

namespace {
constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t highest = std::numeric_limits<std::int64_t>::max();
}  // namespace

TEST_CASE("range counts like Python's range") {
  CHECK(collect(range(5)) == Numbers{0, 1, 2, 3, 4});
  CHECK(collect(range(2, 5)) == Numbers{2, 3, 4});
  CHECK(collect(range(1, 5, 2)) == Numbers{1, 3});
  CHECK(collect(range(1, 6, 2)) == Numbers{1, 3, 5});
  CHECK(collect(range(1, 5, -2)).empty());
  CHECK(collect(range(5, 1)).empty());
  CHECK(collect(range(5, 1, -2)) == Numbers{5, 3});
  CHECK(collect(range(-3)).empty());
  CHECK(collect(range(5), 1) == collect(range(5), 0));
}

TEST_CASE("the cardinality of range is exact (spec I13)") {
  CHECK(range(5).cardinality() == Cardinality::known(5));
  CHECK(range(1, 6, 2).cardinality() == Cardinality::known(3));
  CHECK(range(7, 7).cardinality() == Cardinality::known(0));
  CHECK(range(0, highest).cardinality() == Cardinality::known(static_cast<std::size_t>(highest)));
  CHECK(range(lowest, highest).cardinality() == Cardinality::known(std::numeric_limits<std::size_t>::max()));
}

TEST_CASE("range supports the limits of std::int64_t") {
  CHECK(collect(range(lowest, highest, highest)) == Numbers{lowest, -1, highest - 1});
  CHECK(collect(range(highest, lowest, lowest)) == Numbers{highest, -1});
  CHECK(collect(range(highest - 1, highest)) == Numbers{highest - 1});
}

TEST_CASE("range rejects a step of 0") {
  CHECK_THROWS_WITH_AS(range(0, 5, 0), "range does not advance (step is 0). Give a positive or a negative step.",
                       dist::InvalidArgument);
}
