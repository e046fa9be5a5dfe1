#include <dist/data/interleave.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include <data/sequences.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/cache.hpp>
#include <dist/data/map.hpp>
#include <dist/data/prefetch.hpp>
#include <dist/data/range.hpp>
#include <dist/data/shuffle.hpp>
#include <dist/data/take_skip.hpp>
#include <dist/data/tensor_slices.hpp>
#include <support/allocations.hpp>

using dist::InvalidArgument;
using dist::data::Cardinality;
using dist::data::flat_map;
using dist::data::interleave;
using dist::data::map;
using dist::data::range;
using dist::data::repeat;
using dist_test::collect;
using dist_test::Counting;
using Numbers = std::vector<std::int64_t>;

namespace {

/// `number`, repeated `times` times.
auto copies_of(std::int64_t number, std::size_t times) { return range(number, number + 1) | repeat(times); }

}  // namespace

TEST_CASE("interleave matches the example of tf.data: copies of 1 to 5, two at a time, blocks of four (spec I30)") {
  // 1 and 2 give blocks of four, then the rest. The turn that finds 1 at its end passes to 2; 3 starts at the next
  // turn.
  const auto dataset = range(1, 6) | interleave([](std::int64_t number) { return copies_of(number, 6); }, 2, 4);
  CHECK(collect(dataset) ==
        Numbers{1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 3, 3, 4, 4, 5, 5, 5, 5, 5, 5});
}

TEST_CASE("a dataset that ends passes its turn on, and is replaced at its next turn (spec I30)") {
  // Three places. 1 ends first: its turn passes to 2, and 4 starts after the turn of 3. 3 ends last, alone.
  const auto copies = [](std::int64_t number) { return copies_of(number, static_cast<std::size_t>(number)); };
  CHECK(collect(range(1, 5) | interleave(copies, 3)) == Numbers{1, 2, 3, 2, 3, 4, 3, 4, 4, 4});
  CHECK(collect(range(1, 5) | interleave(copies, 3, 2)) == Numbers{1, 2, 2, 3, 3, 4, 4, 3, 4, 4});
  CHECK(collect(range(1, 4) | interleave(copies, 9)) == Numbers{1, 2, 3, 2, 3, 3});
  CHECK(collect(range(1, 4) | flat_map(copies)) == Numbers{1, 2, 2, 3, 3, 3});
}

TEST_CASE("interleave skips empty datasets") {
  const auto evens = [](std::int64_t number) { return copies_of(number, number % 2 == 0 ? 2 : 0); };
  // 0 and 2 share the two places; the turn that finds 1 empty passes back to 0.
  CHECK(collect(range(0, 4) | interleave(evens, 2)) == Numbers{0, 0, 2, 2});
  CHECK(collect(range(1, 2) | interleave(evens, 2)).empty());
  CHECK(collect(range(0) | interleave(evens, 2)).empty());
}

TEST_CASE("the cardinality of interleave is unknown unless it is empty") {
  const auto twice = interleave([](std::int64_t number) { return copies_of(number, 2); }, 2);
  CHECK((range(3) | twice).cardinality() == Cardinality::unknown());
  CHECK((range(0) | twice).cardinality() == Cardinality::known(0));
  CHECK(collect(range(3) | repeat() | twice | dist::data::take(5)) == Numbers{0, 1, 0, 1, 2});
}

TEST_CASE("inner datasets are iterated in the outer epoch, deterministically (spec I31)") {
  const auto shuffled =
      range(2) |
      interleave([](std::int64_t seed) { return range(20) | dist::data::shuffle(20, std::uint64_t(seed)); }, 2, 3);
  CHECK(collect(shuffled, 0) == collect(shuffled, 0));
  CHECK(collect(shuffled, 0) != collect(shuffled, 1));
}

TEST_CASE("an inner dataset may refer to its element while others are open") {
  const auto strings = Counting{4} | map([](int i) { return std::vector<int>(100, i); });
  const auto dataset =
      strings |
      interleave([](const std::vector<int>& v) { return Counting{2} | map([&v](int i) { return v[99] + i; }); }, 3);
  CHECK(collect(dataset) == std::vector<int>{0, 1, 2, 1, 2, 3, 3, 4});
}

TEST_CASE("interleave works before prefetch, and its iterator can be moved") {
  const auto twice = Counting{9} | interleave([](int i) { return Counting{i}; }, 4, 2);
  CHECK(collect(twice | dist::data::prefetch(2)) == collect(twice));
  auto iterator = twice.iterate(0);
  int element = 0;
  std::vector<int> all;
  for (int i = 0; i < 10 && iterator.next(element); ++i) all.push_back(element);
  auto moved = std::move(iterator);
  while (moved.next(element)) all.push_back(element);
  CHECK(all == collect(twice));
  static_assert(
      dist::data::is_batched<decltype(range(2) |
                                      interleave([](std::int64_t) { return Counting{4} | dist::data::batch(2); }, 2))>);
}

TEST_CASE("opening a dataset does not allocate") {
  const auto dataset = range(50) | interleave([](std::int64_t number) { return copies_of(number, 3); }, 4, 2);
  auto iterator = dataset.iterate(0);
  std::int64_t element = 0;
  const std::size_t before = allocations;
  int count = 0;
  while (iterator.next(element)) ++count;
  CHECK(allocations == before);
  CHECK(count == 150);
}

TEST_CASE("shuffle, prefetch, cache and batch own the elements of inner datasets that have ended") {
  // Dataset n owns a tensor with three rows of 1000 times n, which ends while its rows are held.
  const auto rows = range(6) | interleave(
                                   [](std::int64_t number) {
                                     dist::Tensor<std::int64_t> tensor{dist::Shape{3, 1000}};
                                     for (auto& element : tensor.elements()) element = number;
                                     return dist::data::tensor_slices(std::move(tensor));
                                   },
                                   2);
  static_assert(std::is_same_v<decltype(rows)::Element, dist::Tensor<std::int64_t>>);
  const auto numbers_of = [](const auto& dataset) {
    Numbers numbers;
    std::vector<dist::Tensor<std::int64_t>> all = collect(dataset);
    for (const auto& row : all) {
      CHECK(row.shape() == dist::Shape{1000});
      CHECK(row[0] == row[999]);
      numbers.push_back(row[0]);
    }
    return numbers;
  };
  const Numbers in_turns{0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3, 4, 5, 4, 5, 4, 5};
  CHECK(numbers_of(rows) == in_turns);
  CHECK(numbers_of(rows | dist::data::prefetch(3)) == in_turns);
  const auto cached = rows | dist::data::cache();
  CHECK(numbers_of(cached) == in_turns);
  CHECK(numbers_of(cached) == in_turns);
  Numbers shuffled = numbers_of(rows | dist::data::shuffle(8, 1));
  std::sort(shuffled.begin(), shuffled.end());
  CHECK(shuffled == Numbers{0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5});
  std::int64_t sum = 0;
  for (const auto& batch : (collect(rows | dist::data::shuffle(8, 1) | dist::data::batch(2))))
    sum += batch[0] + batch[1999];
  CHECK(sum == 45);
}

TEST_CASE("interleave rejects lengths of 0") {
  const auto make = [](std::int64_t) { return range(1); };
  CHECK_THROWS_WITH_AS(static_cast<void>(interleave(make, 0)),
                       doctest::Contains("cycle_length is 0, block_length is 1"), InvalidArgument);
  CHECK_THROWS_WITH_AS(static_cast<void>(interleave(make, 2, 0)), doctest::Contains("block_length is 0"),
                       InvalidArgument);
}
