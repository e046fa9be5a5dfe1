#include <dist/data/cache.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include <data/sequences.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/map.hpp>
#include <dist/data/prefetch.hpp>
#include <dist/data/shuffle.hpp>
#include <dist/data/take_skip.hpp>
#include <dist/data/tensor_slices.hpp>
#include <support/allocations.hpp>

using dist::data::cache;
using dist::data::Cardinality;
using dist::data::map;
using dist_test::collect;
using dist_test::Counting;

namespace {

/// The numbers 0 to `count` - 1. Increments `made` for each number.
auto counted(std::atomic<int>& made, int count) {
  return Counting{count} | map([&made](int i) {
           ++made;
           return i;
         });
}

}  // namespace

TEST_CASE("the first complete pass fills the cache, later passes make no elements (spec I31)") {
  std::atomic<int> made{0};
  const auto dataset = counted(made, 4) | cache();
  CHECK(made == 0);
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    CHECK(collect(dataset, epoch) == std::vector<int>{0, 1, 2, 3});
    CHECK(made == 4);
  }
  CHECK(dataset.cardinality() == Cardinality::known(4));
  CHECK(collect(Counting{0} | cache()).empty());
}

TEST_CASE("an incomplete pass does not fill the cache") {
  std::atomic<int> made{0};
  const auto dataset = counted(made, 4) | cache();
  for (const int element : dataset.epoch(0))
    if (element == 2) break;
  CHECK(made == 3);
  // All four elements were returned, but not yet the end.
  auto iterator = dataset.iterate(0);
  int element = 0;
  for (int i = 0; i < 4; ++i) CHECK(iterator.next(element));
  CHECK(made == 7);
  CHECK(collect(dataset) == std::vector<int>{0, 1, 2, 3});
  CHECK(made == 11);
  // The previous pass could not fill the cache, because `iterator` is still filling it.
  CHECK_FALSE(iterator.next(element));
  CHECK_FALSE(iterator.next(element));
  CHECK(collect(dataset) == std::vector<int>{0, 1, 2, 3});
  CHECK(made == 11);
}

TEST_CASE("a pass that throws keeps nothing") {
  bool broken = true;
  const auto dataset = Counting{3} | map([&broken](int i) {
                         if (broken && i == 1) throw std::runtime_error("the source broke");
                         return i;
                       }) |
                       cache();
  auto iterator = dataset.iterate(0);
  int element = 0;
  CHECK(iterator.next(element));
  CHECK_THROWS_AS(static_cast<void>(iterator.next(element)), std::runtime_error);
  broken = false;
  while (iterator.next(element)) continue;
  CHECK(collect(dataset) == std::vector<int>{0, 1, 2});
  CHECK(collect(dataset) == std::vector<int>{0, 1, 2});
}

TEST_CASE("every pass is epoch 0 of the source, before and after the cache is full (spec I31)") {
  const auto shuffled = Counting{20} | dist::data::shuffle(20, 1);
  const auto dataset = shuffled | cache();
  CHECK(collect(dataset, 5) == collect(shuffled, 0));
  CHECK(collect(dataset, 6) == collect(shuffled, 0));
  const auto fresh_orders = Counting{20} | cache() | dist::data::shuffle(20, 1);
  CHECK(collect(fresh_orders, 0) != collect(fresh_orders, 1));
}

TEST_CASE("copies and later steps share one cache") {
  std::atomic<int> made{0};
  const auto dataset = counted(made, 4) | cache();
  const auto twice = dataset | dist::data::repeat(2);
  CHECK(collect(twice) == std::vector<int>{0, 1, 2, 3, 0, 1, 2, 3});
  CHECK(collect(dataset).size() == 4);
  CHECK(made == 4);
}

TEST_CASE("a full cache is read without allocations, in the element's memory") {
  const auto dataset = dist::data::tensor_slices(dist_test::iota<float>({8, 3})) | dist::data::batch(2) | cache();
  static_assert(dist::data::is_batched<decltype(dataset)>);
  CHECK(collect(dataset).size() == 4);
  auto iterator = dataset.iterate(1);
  dist::Tensor<float> element;
  REQUIRE(iterator.next(element));
  const std::size_t before = allocations;
  int more = 0;
  while (iterator.next(element)) ++more;
  CHECK(allocations == before);
  CHECK(more == 3);
  CHECK(dist_test::values(element) == std::vector<float>{18, 19, 20, 21, 22, 23});
}

TEST_CASE("several threads can iterate over a cache, with and without prefetch") {
  const auto dataset = Counting{500} | cache();
  const auto ahead = dataset | dist::data::prefetch(2);
  const auto expected = collect(Counting{500});
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      for (int pass = 0; pass < 5; ++pass) {
        if ((thread + pass) % 3 == 0)
          static_cast<void>(collect(ahead | dist::data::take(100)));
        else if ((thread % 2 == 0 ? collect(dataset) : collect(ahead)) != expected)
          ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("cache rejects an infinite dataset") {
  CHECK_THROWS_WITH_AS(Counting{3} | dist::data::repeat() | cache(),
                       "An infinite dataset cannot be cached (no pass over it is ever complete). Put cache before "
                       "repeat.",
                       dist::InvalidArgument);
}
