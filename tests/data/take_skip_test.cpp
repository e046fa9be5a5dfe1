#include <dist/data/take_skip.hpp>

#include <doctest/doctest.h>

#include <vector>

#include <data/sequences.hpp>
#include <dist/data/batch.hpp>

using dist::data::Cardinality;
using dist::data::take;
using dist_test::collect;
using dist_test::Counting;
using dist_test::EpochNumbers;

TEST_CASE("take returns the first elements, or all of them") {
  CHECK(collect(Counting{5} | take(3)) == std::vector<int>{0, 1, 2});
  CHECK(collect(Counting{2} | take(3)) == std::vector<int>{0, 1});
  CHECK(collect(Counting{2} | take(0)).empty());
  CHECK(collect(EpochNumbers{2} | take(1), 7) == std::vector<std::uint64_t>{7});
}

TEST_CASE("take does not read further elements") {
  constexpr int throws_at = 3;
  CHECK(collect(Counting{5, throws_at} | take(3)) == std::vector<int>{0, 1, 2});
  const auto none = Counting{5, 0} | take(0);
  CHECK(collect(none).empty());
  const auto one = Counting{5} | take(1);
  auto iterator = one.iterate(0);
  int element = 0;
  CHECK(iterator.next(element));
  CHECK_FALSE(iterator.next(element));
  CHECK_FALSE(iterator.next(element));
}

TEST_CASE("the cardinality of take") {
  const Counting unknown{9, Cardinality::unknown()};
  CHECK((Counting{5} | take(3)).cardinality() == Cardinality::known(3));
  CHECK((Counting{5} | take(9)).cardinality() == Cardinality::known(5));
  CHECK((Counting{5} | dist::data::repeat() | take(9)).cardinality() == Cardinality::known(9));
  CHECK((unknown | take(3)).cardinality() == Cardinality::unknown());
  CHECK((unknown | take(0)).cardinality() == Cardinality::known(0));
}

TEST_CASE("take of batches is a dataset of batches (spec I02)") {
  const auto batches = Counting{5} | dist::data::batch(2) | take(1);
  static_assert(dist::data::is_batched<decltype(batches)> && !dist::data::is_batched<decltype(Counting{5} | take(1))>);
  CHECK(dist_test::values(collect(batches).at(0)) == std::vector<int>{0, 1});
}
