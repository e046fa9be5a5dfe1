#include <dist/data/zip.hpp>

#include <doctest/doctest.h>

#include <tuple>
#include <type_traits>
#include <vector>

#include <data/sequences.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/example.hpp>
#include <dist/data/map.hpp>
#include <dist/data/take_skip.hpp>
#include <dist/data/tensor_slices.hpp>
#include <support/allocations.hpp>

using dist::Shape;
using dist::Tensor;
using dist::data::batch;
using dist::data::Cardinality;
using dist::data::map;
using dist::data::repeat;
using dist::data::zip;
using dist_test::collect;
using dist_test::Counting;
using dist_test::EpochNumbers;

TEST_CASE("zip combines elements, and ends with the shortest dataset") {
  const auto tens = Counting{2} | map([](int i) { return 10.5 * i; });
  const auto pairs = zip(Counting{4}, tens);
  static_assert(std::is_same_v<decltype(pairs)::Element, std::tuple<int, double>>);
  CHECK(collect(pairs) == std::vector<std::tuple<int, double>>{{0, 0.0}, {1, 10.5}});
  CHECK(collect(zip(tens, Counting{4})).size() == 2);
  CHECK(collect(zip(Counting{3})) == std::vector<std::tuple<int>>{0, 1, 2});
  CHECK(collect(zip(Counting{2}, Counting{3}, EpochNumbers{9}), 4) ==
        std::vector<std::tuple<int, int, std::uint64_t>>{{0, 0, 4}, {1, 1, 4}});
  auto iterator = pairs.iterate(0);
  std::tuple<int, double> element;
  while (iterator.next(element)) continue;
  CHECK_FALSE(iterator.next(element));
}

TEST_CASE("a tuple can be mapped to an example") {
  const auto examples = zip(Counting{2}, Counting{2}) | map([](const std::tuple<int, int>& pair) {
                          return dist::data::Example{std::get<0>(pair), 7 * std::get<1>(pair)};
                        });
  CHECK(collect(examples)[1].y == 7);
}

TEST_CASE("the cardinality of zip is the cardinality of the shortest dataset") {
  const Counting three{3};
  const Counting unknown{2, Cardinality::unknown()};
  const Counting empty{0};
  CHECK(zip(three, Counting{5}).cardinality() == Cardinality::known(3));
  CHECK(zip(Counting{5}, three).cardinality() == Cardinality::known(3));
  CHECK(zip(three | repeat(), three).cardinality() == Cardinality::known(3));
  CHECK(zip(three, three | repeat()).cardinality() == Cardinality::known(3));
  CHECK(zip(three | repeat(), three | repeat()).cardinality() == Cardinality::infinite());
  CHECK(zip(three, unknown).cardinality() == Cardinality::unknown());
  CHECK(zip(three | repeat(), unknown).cardinality() == Cardinality::unknown());
  CHECK(zip(unknown, empty).cardinality() == Cardinality::known(0));
}

TEST_CASE("zip reuses element memory") {
  const auto pairs = zip(Counting{64} | batch(8), Counting{64} | batch(8));
  auto iterator = pairs.iterate(0);
  std::tuple<Tensor<int>, Tensor<int>> element;
  REQUIRE(iterator.next(element));
  const std::size_t before = allocations;
  int more = 0;
  while (iterator.next(element)) ++more;
  CHECK(allocations == before);
  CHECK(more == 7);
}

TEST_CASE("zip of batches makes batches, with a size if they agree (spec I02, I30)") {
  using dist::data::known_batch_size;
  using dist::data::partial_batches_of;
  using dist::data::PartialBatches;
  const auto batches = Counting{8} | batch(4);
  const auto pairs = zip(batches, Counting{10} | batch(4));
  static_assert(dist::data::is_batched<decltype(pairs)> && dist::data::HasRows<decltype(pairs)::Element>);
  static_assert(!dist::data::is_batched<decltype(zip(batches, Counting{4}))>);
  CHECK(known_batch_size(pairs) == 4);
  CHECK(known_batch_size(zip(batches, Counting{8} | batch(2))) == 0);
  CHECK(known_batch_size(zip(batches)) == 4);
  CHECK(partial_batches_of(pairs) == PartialBatches::last);
  CHECK(partial_batches_of(zip(batches, batches)) == PartialBatches::none);
}

TEST_CASE("tuples can be batched (spec I30)") {
  const auto batches = collect(zip(Counting{3}, dist::data::tensor_slices(dist_test::iota<float>({3, 2}))) | batch(2));
  REQUIRE(batches.size() == 2);
  CHECK(dist_test::values(std::get<0>(batches[0])) == std::vector<int>{0, 1});
  CHECK(dist_test::values(std::get<1>(batches[1])) == std::vector<float>{4, 5});
}
