#include <dist/data/index_shuffle.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include <dist/core/random.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/range.hpp>
#include <dist/data/take_skip.hpp>

#include <doctest/doctest.h>

#include <data/sequences.hpp>

namespace data = dist::data;
using dist_test::collect;
using Numbers = std::vector<std::int64_t>;

namespace {

Numbers sorted(Numbers numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace

TEST_CASE("index_shuffle returns each element once, for any number of elements") {
  for (std::int64_t count = 0; count < 70; ++count) {
    CAPTURE(count);
    CHECK(sorted(collect(data::range(count) | data::index_shuffle(3))) == collect(data::range(count)));
  }
  for (const std::int64_t count : {255, 256, 257, 1023, 1024, 1025, 4097})
    CHECK(sorted(collect(data::range(count) | data::index_shuffle(3))) == collect(data::range(count)));
}

TEST_CASE("the permutation of more elements than fit into memory has different numbers in range") {
  for (const std::uint64_t count : {std::uint64_t{1} << 40, (std::uint64_t{1} << 40) + 1, ~std::uint64_t{0}}) {
    const data::detail::IndexPermutation place_of{count, dist::RandomStream{5}};
    std::vector<std::uint64_t> places;
    for (std::uint64_t i = 0; i < 1000; ++i) places.push_back(place_of(i));
    for (const std::uint64_t place : places) CHECK(place < count);
    std::sort(places.begin(), places.end());
    CHECK(std::adjacent_find(places.begin(), places.end()) == places.end());
    CHECK(places.front() < count / 50);  // they spread over the whole range
    CHECK(places.back() > count - count / 50);
  }
}

TEST_CASE("the order of index_shuffle depends on the seed and the epoch") {
  const auto of = [](std::uint64_t seed, std::uint64_t epoch, data::Reshuffle reshuffle = data::Reshuffle::each_epoch) {
    return collect(data::range(50) | data::index_shuffle(seed, reshuffle), epoch);
  };
  CHECK(of(1, 0) == of(1, 0));
  CHECK(of(1, 0) != of(2, 0));
  CHECK(of(1, 0) != of(1, 1));
  CHECK(of(1, 0, data::Reshuffle::never) == of(1, 1, data::Reshuffle::never));
  CHECK(of(1, 0) != collect(data::range(50)));
}

TEST_CASE("each element is equally likely at each place, and places of neighbours are independent") {
  constexpr std::size_t count = 13, seeds = 6'500;
  std::map<std::int64_t, std::size_t> at_first, at_seventh;
  std::size_t in_order = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const data::detail::IndexPermutation place_of{count, dist::RandomStream{seed}};
    ++at_first[static_cast<std::int64_t>(place_of(0))];
    ++at_seventh[static_cast<std::int64_t>(place_of(6))];
    if (place_of(6) < place_of(7)) ++in_order;
  }
  // Expected 500 of each, with a standard deviation of 22; 3250 in order, with a standard deviation of 40.
  for (const auto& counts : {at_first, at_seventh}) {
    CHECK(counts.size() == count);
    for (const auto& [element, times] : counts) CHECK(std::abs(static_cast<double>(times) - 500) < 110);
  }
  CHECK(std::abs(static_cast<double>(in_order) - 3250) < 200);
}

TEST_CASE("index_shuffle of batches may have the partial batch anywhere, and needs a known number of elements") {
  const auto batches = data::range(23) | data::batch(4) | data::index_shuffle(1);
  CHECK(data::partial_batches_of(batches) == data::PartialBatches::any);
  CHECK(data::known_batch_size(batches) == 4);
  CHECK((data::range(3) | data::take(2) | data::index_shuffle()).cardinality() == data::Cardinality::known(2));
  CHECK_THROWS_WITH_AS(static_cast<void>(data::detail::count_to_shuffle(data::Cardinality::unknown())),
                       doctest::Contains("the number of its elements is not known"), dist::InvalidArgument);
  CHECK_THROWS_AS(static_cast<void>(data::detail::count_to_shuffle(data::Cardinality::infinite())),
                  dist::InvalidArgument);
}
