#include <dist/data/zip.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include <data/sequences.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/map.hpp>
#include <dist/data/take_skip.hpp>

using dist::data::batch;
using dist::data::Cardinality;
using dist::data::concatenate;
using dist::data::repeat;
using dist_test::collect;
using dist_test::Counting;
using dist_test::EpochNumbers;

TEST_CASE("concatenate appends the second dataset, in the same epoch") {
  const auto tens = Counting{2} | dist::data::map([](int i) { return 10 * i; });
  CHECK(collect(Counting{3} | concatenate(tens)) == std::vector<int>{0, 1, 2, 0, 10});
  CHECK(collect(Counting{0} | concatenate(tens)) == std::vector<int>{0, 10});
  CHECK(collect(tens | concatenate(Counting{0})) == std::vector<int>{0, 10});
  CHECK(collect(EpochNumbers{1} | concatenate(EpochNumbers{2}), 6) == std::vector<std::uint64_t>{6, 6, 6});
  const auto both = Counting{1} | concatenate(Counting{1});
  auto iterator = both.iterate(0);
  int element = 0;
  while (iterator.next(element)) continue;
  CHECK_FALSE(iterator.next(element));
}

TEST_CASE("the second dataset is not read before the first one ends") {
  const auto dataset = Counting{2} | concatenate(Counting{1, 0});
  CHECK(collect(dataset | dist::data::take(2)) == std::vector<int>{0, 1});
  CHECK_THROWS_AS(collect(dataset), std::runtime_error);
}

TEST_CASE("the cardinality of concatenate is the sum") {
  constexpr std::size_t huge = std::numeric_limits<std::size_t>::max();
  const Counting two{2};
  const Counting unknown{2, Cardinality::unknown()};
  CHECK((two | concatenate(Counting{3})).cardinality() == Cardinality::known(5));
  CHECK((two | concatenate(two | repeat())).cardinality() == Cardinality::infinite());
  CHECK((unknown | concatenate(two | repeat())).cardinality() == Cardinality::infinite());
  CHECK((two | repeat() | concatenate(two)).cardinality() == Cardinality::infinite());
  CHECK((two | concatenate(unknown)).cardinality() == Cardinality::unknown());
  CHECK((unknown | concatenate(two)).cardinality() == Cardinality::unknown());
  CHECK((two | concatenate(Counting{2, Cardinality::known(huge - 1)})).cardinality() == Cardinality::unknown());
  CHECK((two | concatenate(Counting{2, Cardinality::known(huge - 2)})).cardinality() == Cardinality::known(huge));
}

TEST_CASE("concatenate makes batches only of two batched datasets (spec I02)") {
  const auto batches = Counting{2} | batch(2) | concatenate(Counting{3} | batch(3));
  static_assert(dist::data::is_batched<decltype(batches)>);
  static_assert(!dist::data::is_batched<decltype(Counting{2} | concatenate(Counting{2}))>);
  CHECK(collect(batches)[1].shape() == dist::Shape{3});
}

TEST_CASE("concatenate reports a common batch size, with partial batches in the middle (spec I02)") {
  using dist::data::known_batch_size;
  using dist::data::partial_batches_of;
  using dist::data::PartialBatches;
  const auto full = Counting{4} | batch(2);
  const auto partial = Counting{3} | batch(2);
  CHECK(known_batch_size(full | concatenate(partial)) == 2);
  CHECK(known_batch_size(full | concatenate(Counting{3} | batch(3))) == 0);
  CHECK(partial_batches_of(full | concatenate(full)) == PartialBatches::none);
  CHECK(partial_batches_of(full | concatenate(partial)) == PartialBatches::last);
  CHECK(partial_batches_of(partial | concatenate(full)) == PartialBatches::any);
}
