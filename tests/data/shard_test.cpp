#include <dist/data/shard.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include <data/sequences.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/take_skip.hpp>

using dist::InvalidArgument;
using dist::data::Cardinality;
using dist::data::shard;
using dist::data::shard_hint;
using dist_test::collect;
using dist_test::Counting;

TEST_CASE("a shard is every n-th element (spec I09)") {
  CHECK(collect(Counting{7} | shard(3, 0)) == std::vector<int>{0, 3, 6});
  CHECK(collect(Counting{7} | shard(3, 1)) == std::vector<int>{1, 4});
  CHECK(collect(Counting{7} | shard(3, 2)) == std::vector<int>{2, 5});
  CHECK(collect(Counting{7} | shard(1, 0)) == collect(Counting{7}));
  CHECK(collect(Counting{2} | shard(3, 2)).empty());
  static_assert(dist::data::is_batched<decltype(Counting{4} | dist::data::batch(2) | shard(2, 0))>);
}

TEST_CASE("shards partition the dataset, and report their cardinalities") {
  for (const std::size_t shards : {1U, 2U, 3U, 4U, 8U})
    for (int count = 0; count <= 20; ++count) {
      std::vector<int> all;
      for (std::size_t index = 0; index < shards; ++index) {
        const auto part = Counting{count} | shard(shards, index);
        const std::vector<int> elements = collect(part);
        CHECK(part.cardinality() == Cardinality::known(elements.size()));
        all.insert(all.end(), elements.begin(), elements.end());
      }
      std::sort(all.begin(), all.end());
      CHECK(all == collect(Counting{count}));
    }
  CHECK((Counting{3} | dist::data::repeat() | shard(2, 1)).cardinality() == Cardinality::infinite());
  CHECK((Counting{3, Cardinality::unknown()} | shard(2, 1)).cardinality() == Cardinality::unknown());
}

TEST_CASE("a hint is the whole dataset until it is replaced (spec I11)") {
  auto hinted = Counting{5} | shard(shard_hint);
  CHECK(hinted.is_hint());
  CHECK(collect(hinted) == collect(Counting{5}));
  hinted.replace_hint(2, 1);
  CHECK(collect(hinted) == std::vector<int>{1, 3});
  CHECK_FALSE((Counting{5} | shard(2, 0)).is_hint());
}

TEST_CASE("a replaced hint needs an element for every shard, on every worker (spec I11)") {
  for (const std::size_t index : {0U, 2U}) {
    auto hinted = Counting{2} | shard(shard_hint);
    hinted.replace_hint(3, index);
    CHECK_THROWS_WITH_AS(collect(hinted), doctest::Contains("2 elements for 3 workers"), InvalidArgument);
    // The error is thrown before any worker uses an element.
    auto iterator = hinted.iterate(0);
    int element = 0;
    CHECK_THROWS_AS(iterator.next(element), InvalidArgument);
  }
  for (const int index : {0, 1, 2}) {
    auto enough = Counting{3} | shard(shard_hint);
    enough.replace_hint(3, static_cast<std::size_t>(index));
    CHECK(collect(enough) == std::vector<int>{index});
    auto twice = Counting{6} | shard(shard_hint);
    twice.replace_hint(3, static_cast<std::size_t>(index));
    CHECK(collect(twice) == std::vector<int>{index, index + 3});
  }
}

TEST_CASE("a shard index out of range is rejected (spec I07)") {
  CHECK_THROWS_WITH_AS(static_cast<void>(shard(0, 0)), doctest::Contains("shard 0 of 0"), InvalidArgument);
  CHECK_THROWS_WITH_AS(static_cast<void>(shard(2, 2)), doctest::Contains("shard 2 of 2"), InvalidArgument);
}
