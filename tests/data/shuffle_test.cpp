#include <dist/data/shuffle.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include <data/sequences.hpp>
#include <dist/data/take_skip.hpp>

using dist::InvalidArgument;
using dist::data::Cardinality;
using dist::data::repeat;
using dist::data::Reshuffle;
using dist::data::shuffle;
using dist_test::collect;
using dist_test::Counting;

namespace {

std::vector<int> in_order(int count) {
  std::vector<int> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

/// The value that Pearson's statistic with `freedom` degrees of freedom exceeds once in 30,000 times: four standard
/// deviations, by the normal approximation of Wilson and Hilferty (1931).
double chi_square_bound(double freedom) {
  const double variance = 2 / (9 * freedom);
  return freedom * std::pow(1 - variance + 4 * std::sqrt(variance), 3);
}

}  // namespace

TEST_CASE("shuffle returns the same elements in another order") {
  for (const std::size_t buffer : {2U, 10U, 99U, 100U, 1000U}) {
    CAPTURE(buffer);
    const auto dataset = Counting{100} | shuffle(buffer, 7);
    CHECK(dataset.cardinality() == Cardinality::known(100));
    auto numbers = collect(dataset);
    CHECK(numbers != in_order(100));
    std::sort(numbers.begin(), numbers.end());
    CHECK(numbers == in_order(100));
  }
  CHECK(collect(Counting{5} | shuffle(1)) == in_order(5));
  CHECK(collect(Counting{0} | shuffle(10)).empty());
}

TEST_CASE("the order depends only on the seed and the epoch (spec I31)") {
  const auto dataset = Counting{50} | shuffle(20, 3);
  CHECK(collect(dataset, 0) == collect(dataset, 0));
  CHECK(collect(dataset, 0) == collect(Counting{50, Cardinality::unknown()} | shuffle(20, 3), 0));
  CHECK(collect(dataset, 0) != collect(dataset, 1));
  CHECK(collect(dataset, 0) != collect(Counting{50} | shuffle(20, 4), 0));
  CHECK(collect(dataset, 1) != collect(Counting{50} | shuffle(20, 4), 0));
  const auto fixed = Counting{50} | shuffle(20, 3, Reshuffle::never);
  CHECK(collect(fixed, 0) == collect(fixed, 9));
  CHECK(collect(fixed, 0) == collect(dataset, 0));
}

TEST_CASE("a repeated shuffle has a new order in every round (spec I31)") {
  const auto numbers = collect(Counting{30} | shuffle(30, 5) | repeat(2));
  REQUIRE(numbers.size() == 60);
  const std::vector<int> first(numbers.begin(), numbers.begin() + 30);
  const std::vector<int> second(numbers.begin() + 30, numbers.end());
  CHECK(first != second);
  CHECK(std::is_permutation(first.begin(), first.end(), second.begin()));
}

TEST_CASE("an element is at most buffer - 1 places early") {
  constexpr int buffer = 10;
  const auto numbers = collect(Counting{1000} | shuffle(buffer, 11));
  for (std::size_t place = 0; place < numbers.size(); ++place)
    CHECK(numbers[place] <= static_cast<int>(place) + buffer - 1);
}

TEST_CASE("a buffer of the size of the dataset makes all permutations equally likely") {
  constexpr int epochs = 24 * 500;
  const auto dataset = Counting{4} | shuffle(4, 13);
  std::map<std::vector<int>, int> seen;
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) ++seen[collect(dataset, epoch)];
  REQUIRE(seen.size() == 24);
  double statistic = 0;
  for (const auto& [permutation, count] : seen) statistic += (count - 500.0) * (count - 500.0) / 500.0;
  CHECK(statistic < chi_square_bound(23));
}

TEST_CASE("a small buffer returns each of its elements with the same probability") {
  // The first element from a buffer of 5 is uniform on 0..4; the second is the new element 5 with probability 1/5.
  constexpr int epochs = 10'000;
  const auto dataset = Counting{100} | shuffle(5, 17);
  std::array<int, 5> first{};
  int newcomers = 0;
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    auto iterator = dataset.iterate(epoch);
    int element = 0;
    REQUIRE(iterator.next(element));
    ++first[static_cast<std::size_t>(element)];
    REQUIRE(iterator.next(element));
    newcomers += element == 5;
  }
  double statistic = 0;
  for (const int count : first) statistic += (count - epochs / 5.0) * (count - epochs / 5.0) / (epochs / 5.0);
  CHECK(statistic < chi_square_bound(4));
  const double deviation = std::sqrt(epochs * 0.2 * 0.8);
  CHECK(newcomers > epochs * 0.2 - 5 * deviation);
  CHECK(newcomers < epochs * 0.2 + 5 * deviation);
}

TEST_CASE("a pass stays at its end") {
  const auto dataset = Counting{3} | shuffle(2);
  auto iterator = dataset.iterate(0);
  int element = 0;
  for (int i = 0; i < 3; ++i) CHECK(iterator.next(element));
  CHECK_FALSE(iterator.next(element));
  CHECK_FALSE(iterator.next(element));
}

TEST_CASE("shuffle rejects an empty buffer, and accepts a huge one") {
  CHECK_THROWS_WITH_AS(static_cast<void>(shuffle(0)), doctest::Contains("buffer_size is 0"), InvalidArgument);
  CHECK(collect(Counting{3} | shuffle(static_cast<std::size_t>(-1))).size() == 3);
}
