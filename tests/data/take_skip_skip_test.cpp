#include <dist/data/take_skip.hpp>

#include <doctest/doctest.h>

#include <stdexcept>
#include <vector>

#include <data/sequences.hpp>
#include <dist/data/batch.hpp>

using dist::data::Cardinality;
using dist::data::skip;
using dist_test::collect;
using dist_test::Counting;

TEST_CASE("skip omits the first elements, or all of them") {
  CHECK(collect(Counting{5} | skip(3)) == std::vector<int>{3, 4});
  CHECK(collect(Counting{5} | skip(0)) == std::vector<int>{0, 1, 2, 3, 4});
  CHECK(collect(Counting{5} | skip(5)).empty());
  const auto beyond = Counting{2} | skip(9);
  auto iterator = beyond.iterate(0);
  int element = 0;
  CHECK_FALSE(iterator.next(element));
  CHECK_FALSE(iterator.next(element));
}

TEST_CASE("take and skip split a dataset in two") {
  CHECK(collect(Counting{5} | dist::data::take(2)) == std::vector<int>{0, 1});
  CHECK(collect(Counting{5} | skip(2)) == std::vector<int>{2, 3, 4});
  CHECK(collect(dist_test::EpochNumbers{3} | skip(1), 4) == std::vector<std::uint64_t>{4, 4});
}

TEST_CASE("exceptions of skipped elements propagate") {
  CHECK_THROWS_AS(collect(Counting{5, 1} | skip(3)), std::runtime_error);
}

TEST_CASE("the cardinality of skip") {
  CHECK((Counting{5} | skip(3)).cardinality() == Cardinality::known(2));
  CHECK((Counting{5} | skip(6)).cardinality() == Cardinality::known(0));
  CHECK((Counting{5} | dist::data::repeat() | skip(6)).cardinality() == Cardinality::infinite());
  CHECK((Counting{5, Cardinality::unknown()} | skip(1)).cardinality() == Cardinality::unknown());
  static_assert(dist::data::is_batched<decltype(Counting{5} | dist::data::batch(2) | skip(1))>);
}
