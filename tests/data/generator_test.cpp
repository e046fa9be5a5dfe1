#include <dist/data/generator.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include <data/sequences.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/prefetch.hpp>

using dist::data::Cardinality;
using dist::data::generator;
using dist_test::collect;

namespace {

/// Generates 0, 1, …, `count` - 1.
auto counting(int count) {
  return [count] {
    return [count, i = 0]() mutable -> std::optional<int> { return i < count ? std::optional{i++} : std::nullopt; };
  };
}

}  // namespace

TEST_CASE("a generator restarts in every pass (spec I30, I31)") {
  const auto dataset = generator(counting(3));
  CHECK(collect(dataset) == std::vector<int>{0, 1, 2});
  CHECK(collect(dataset, 5) == std::vector<int>{0, 1, 2});
  auto one = dataset.iterate(0);
  auto other = dataset.iterate(0);
  int element = 0;
  CHECK((one.next(element) && one.next(element) && element == 1));
  CHECK((other.next(element) && element == 0));
}

TEST_CASE("a factory may take the epoch") {
  const auto dataset = generator([](std::uint64_t epoch) {
    return [epoch, left = 2]() mutable -> std::optional<std::uint64_t> {
      if (left-- == 0) return {};
      return 100 * epoch;
    };
  });
  CHECK(collect(dataset, 3) == std::vector<std::uint64_t>{300, 300});
}

TEST_CASE("a generator is not called again after its end") {
  int calls = 0;
  const auto dataset = generator([&calls] {
    return [&calls]() -> std::optional<int> {
      ++calls;
      return {};
    };
  });
  auto iterator = dataset.iterate(0);
  int element = 0;
  CHECK_FALSE(iterator.next(element));
  CHECK_FALSE(iterator.next(element));
  CHECK(calls == 1);
}

TEST_CASE("generator reports the user's cardinality") {
  CHECK(generator(counting(3)).cardinality() == Cardinality::unknown());
  CHECK(generator(counting(3), Cardinality::known(3)).cardinality() == Cardinality::known(3));
  CHECK(generator(counting(3), Cardinality::infinite()).cardinality() == Cardinality::infinite());
}

TEST_CASE("exceptions of a generator propagate unchanged, also through other steps") {
  const auto broken = generator([] {
    return [i = 0]() mutable -> std::optional<int> {
      if (i == 2) throw std::out_of_range("the sensor is off");
      return i++;
    };
  });
  CHECK_THROWS_WITH_AS(collect(broken), "the sensor is off", std::out_of_range);
  CHECK_THROWS_WITH_AS(collect(broken | dist::data::batch(4) | dist::data::prefetch(2)), "the sensor is off",
                       std::out_of_range);
}

TEST_CASE("elements and generators may be move-only") {
  const auto dataset = generator([] {
    return [next = std::make_unique<int>(0)]() -> std::optional<std::unique_ptr<int>> {
      if (*next == 2) return {};
      return std::make_unique<int>((*next)++);
    };
  });
  int expected = 0;
  for (const auto& element : dataset.epoch(0)) CHECK(*element == expected++);
  CHECK(expected == 2);
}
