#include <dist/data/map.hpp>

#include <doctest/doctest.h>

#include <stdexcept>
#include <vector>

#include <data/sequences.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/take_skip.hpp>

using dist::data::batch;
using dist::data::Cardinality;
using dist::data::filter;
using dist_test::collect;
using dist_test::Counting;

TEST_CASE("filter keeps the elements that satisfy the predicate, in order") {
  CHECK(collect(Counting{7} | filter([](int i) { return i % 3 == 0; })) == std::vector<int>{0, 3, 6});
  CHECK(collect(Counting{7} | filter([](const int&) { return false; })).empty());
  const auto all = Counting{2} | filter([](int) { return true; });
  CHECK(collect(all) == std::vector<int>{0, 1});
  auto iterator = all.iterate(0);
  int element = 0;
  while (iterator.next(element)) continue;
  CHECK_FALSE(iterator.next(element));
}

TEST_CASE("the cardinality of filter is unknown") {
  const auto odd = filter([](int i) { return i % 2 == 1; });
  CHECK((Counting{5} | odd).cardinality() == Cardinality::unknown());
  CHECK((Counting{0} | odd).cardinality() == Cardinality::known(0));
  CHECK((Counting{5} | dist::data::repeat() | odd).cardinality() == Cardinality::unknown());
  CHECK(collect(Counting{3} | dist::data::repeat() | odd | dist::data::take(3)) == std::vector<int>{1, 1, 1});
}

TEST_CASE("exceptions of the predicate propagate") {
  const auto fragile = Counting{3} | filter([](int i) {
                         if (i == 2) throw std::domain_error("two");
                         return true;
                       });
  CHECK_THROWS_AS(collect(fragile), std::domain_error);
}

TEST_CASE("batch after filter makes full batches, filter after batch keeps whole batches (spec I02)") {
  const auto odd = Counting{9} | filter([](int i) { return i % 2 == 1; }) | batch(3);
  const auto batches = collect(odd);
  REQUIRE(batches.size() == 2);
  CHECK(dist_test::values(batches[0]) == std::vector<int>{1, 3, 5});
  CHECK(dist_test::values(batches[1]) == std::vector<int>{7});
  const auto late = Counting{6} | batch(2) | filter([](const dist::Tensor<int>& rows) { return rows[0] == 2; });
  static_assert(dist::data::is_batched<decltype(late)>);
  REQUIRE(collect(late).size() == 1);
  CHECK(dist_test::values(collect(late)[0]) == std::vector<int>{2, 3});
}
