#include <dist/data/take_skip.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <vector>

#include <data/sequences.hpp>
#include <dist/data/generator.hpp>

using dist::data::Cardinality;
using dist::data::repeat;
using dist_test::collect;
using dist_test::Counting;
using dist_test::EpochNumbers;

TEST_CASE("repeat keeps the order") {
  CHECK(collect(Counting{2} | repeat(3)) == std::vector<int>{0, 1, 0, 1, 0, 1});
  CHECK(collect(Counting{2} | repeat(1)) == std::vector<int>{0, 1});
  CHECK(collect(Counting{2} | repeat(0)).empty());
}

TEST_CASE("every round is a separate epoch, in every outer epoch (spec I31)") {
  const auto twice = EpochNumbers{1} | repeat(2);
  std::set<std::uint64_t> seen;
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch)
    for (const std::uint64_t number : collect(twice, epoch)) CHECK(seen.insert(number).second);
  CHECK(seen.size() == 6);

  const auto forever = EpochNumbers{1} | repeat();
  std::set<std::uint64_t> rounds;
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
    auto iterator = forever.iterate(epoch);
    std::uint64_t number = 0;
    for (int i = 0; i < 100; ++i) {
      REQUIRE(iterator.next(number));
      CHECK(rounds.insert(number).second);
    }
  }
}

TEST_CASE("single rounds of repeat may be empty") {
  // Generates `rounds[e]` elements in epoch e, or 0 beyond the list.
  const auto of_rounds = [](std::vector<int> rounds) {
    return dist::data::generator([rounds](std::uint64_t epoch) {
      return [left = epoch < rounds.size() ? rounds[epoch] : 0, epoch]() mutable {
        return left-- > 0 ? std::optional{static_cast<int>(epoch)} : std::nullopt;
      };
    });
  };
  CHECK(collect(of_rounds({0, 2, 0, 1}) | repeat(4)) == std::vector<int>{1, 1, 3});
  CHECK(collect(of_rounds({0, 0, 1}) | repeat(2)).empty());
  // An infinite repetition ends at an empty round.
  CHECK(collect(of_rounds({2, 1}) | repeat()) == std::vector<int>{0, 0, 1});
}

TEST_CASE("an empty dataset repeated forever is empty") {
  CHECK(collect(Counting{0} | repeat()).empty());
  CHECK(collect(Counting{0, Cardinality::unknown()} | repeat()).empty());
}

TEST_CASE("the cardinality of repeat") {
  constexpr std::size_t huge = std::numeric_limits<std::size_t>::max() - 1;
  const Counting unknown{2, Cardinality::unknown()};
  CHECK((Counting{2} | repeat(3)).cardinality() == Cardinality::known(6));
  CHECK((Counting{2} | repeat(0)).cardinality() == Cardinality::known(0));
  CHECK((Counting{2} | repeat()).cardinality() == Cardinality::infinite());
  CHECK((Counting{0} | repeat()).cardinality() == Cardinality::known(0));
  CHECK((unknown | repeat(3)).cardinality() == Cardinality::unknown());
  CHECK((unknown | repeat()).cardinality() == Cardinality::infinite());
  CHECK((Counting{2} | repeat() | repeat(3)).cardinality() == Cardinality::infinite());
  CHECK((Counting{3} | repeat(huge)).cardinality() == Cardinality::unknown());
}
