#include <dist/data/dataset.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <ranges>
#include <tuple>
#include <vector>

#include <data/sequences.hpp>

using dist::data::Cardinality;
using dist::data::Dataset;
using dist::data::Pipe;
using dist_test::collect;
using dist_test::Counting;
using dist_test::EpochNumbers;

namespace {

/// A minimal dataset, and versions of it that each lack one member.
struct Archetype {
  struct Element {
    Element() = default;
    Element(Element&&) = default;
    Element& operator=(Element&&) = default;
  };
  struct Iterator {
    Iterator(Iterator&&) = default;
    Iterator& operator=(Iterator&&) = default;
    bool next(Element&);
  };
  Archetype(Archetype&&) = default;
  Iterator iterate(std::uint64_t) const;
  Cardinality cardinality() const;
};
struct NoElement {
  Counting::Iterator iterate(std::uint64_t) const;
  Cardinality cardinality() const;
};
struct NoCardinality {
  using Element = int;
  Counting::Iterator iterate(std::uint64_t) const;
};
struct NoIterate {
  using Element = int;
  Cardinality cardinality() const;
};
struct IteratesOnce {
  using Element = int;
  Counting::Iterator iterate(std::uint64_t);
  Cardinality cardinality() const;
};
struct OtherElement {
  using Element = std::vector<int>;
  Counting::Iterator iterate(std::uint64_t) const;
  Cardinality cardinality() const;
};
static_assert(Dataset<Archetype> && Dataset<Counting>);
static_assert(!Dataset<NoElement> && !Dataset<NoCardinality> && !Dataset<NoIterate> && !Dataset<IteratesOnce> &&
              !Dataset<OtherElement> && !Dataset<int>);

struct Batches : Archetype {
  static constexpr bool is_batched = true;
};
static_assert(!dist::data::is_batched<Archetype> && dist::data::is_batched<Batches> && !dist::data::is_batched<int>);

struct Lent : Archetype {
  static constexpr bool lends_elements = true;
};
static_assert(!dist::data::lends_elements<Archetype> && dist::data::lends_elements<Lent>);

static_assert(dist::data::HasCardinality<Archetype> && !dist::data::HasCardinality<NoCardinality>);
static_assert(dist::data::HasEpochs<Counting> && !dist::data::HasEpochs<Archetype>);

struct Step : Archetype {
  Archetype& upstream();
};
struct Steps : Archetype {
  std::tuple<Archetype&> upstreams();
};
static_assert(dist::data::HasUpstream<Step> && !dist::data::HasUpstream<Steps> && !dist::data::HasUpstream<Archetype>);
static_assert(dist::data::HasUpstreams<Steps> && !dist::data::HasUpstreams<Step>);

static_assert(std::ranges::input_range<Counting>);
static_assert(std::input_iterator<decltype(std::declval<Counting&>().begin())>);

}  // namespace

TEST_CASE("a dataset can be iterated repeatedly") {
  Counting three{3};
  for (int round = 0; round < 2; ++round) {
    int expected = 0;
    for (auto&& element : three) CHECK(element == expected++);
    CHECK(expected == 3);
  }
  for (auto&& element : Counting{0}) FAIL(element);
}

TEST_CASE("every loop over one object is a new epoch (spec I31)") {
  EpochNumbers numbers{1};
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch)
    for (auto&& element : numbers) CHECK(element == epoch);
  CHECK(collect(numbers, 41) == std::vector<std::uint64_t>{41});
  EpochNumbers other{1};
  for (auto&& element : other) CHECK(element == 0);
}

TEST_CASE("a pipe copies an lvalue and moves an rvalue") {
  struct MoveOnly : Counting {
    explicit MoveOnly(int count) : Counting(count) {}
    MoveOnly(MoveOnly&&) = default;
    std::unique_ptr<int> owned;
  };
  const Pipe identity{[]<Dataset D>(D dataset) { return dataset; }};
  const Counting source{2};
  CHECK(collect(source | identity) == std::vector<int>{0, 1});
  CHECK(collect(MoveOnly{3} | identity) == std::vector<int>{0, 1, 2});
}

TEST_CASE("next_of returns the next element as an optional (spec I22)") {
  const Counting two{2};
  auto iterator = two.iterate(0);
  CHECK(dist::data::next_of<int>(iterator) == 0);
  CHECK(dist::data::next_of<int>(iterator) == 1);
  CHECK_FALSE(dist::data::next_of<int>(iterator).has_value());
}
