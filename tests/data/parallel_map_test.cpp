#include <dist/data/parallel_map.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <data/sequences.hpp>
#include <dist/core/random.hpp>
#include <dist/data/auto_shard.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/prefetch.hpp>
#include <dist/data/range.hpp>
#include <dist/data/shuffle.hpp>
#include <dist/data/take_skip.hpp>

namespace data = dist::data;
using data::Cardinality;
using data::NumParallelCalls;
using dist_test::collect;
using dist_test::Counting;
using dist_test::settles_at;

namespace {

std::string name_of(int i) {
  if (i % 7 == 3) std::this_thread::sleep_for(std::chrono::milliseconds{1});  // later elements are ready first
  return std::to_string(i);
}

}  // namespace

TEST_CASE("map with several threads makes the same elements in the same order") {
  for (const std::size_t threads : {1U, 2U, 3U, 8U}) {
    const auto names = Counting{200} | data::map(name_of, NumParallelCalls{threads});
    CHECK(names.cardinality() == Cardinality::known(200));
    for (int pass = 0; pass < 3; ++pass) CHECK(collect(names) == collect(Counting{200} | data::map(name_of)));
  }
  CHECK(collect(Counting{0} | data::map(name_of, NumParallelCalls{2})).empty());
  CHECK((Counting{4, Cardinality::unknown()} | data::map(name_of, NumParallelCalls{2})).cardinality() ==
        Cardinality::unknown());
}

TEST_CASE("several threads call the function of map at the same time") {
  std::atomic<int> calls{0};
  const auto meet = [&](int i) {  // waits for the other two of three elements
    ++calls;
    while (calls < 3 * (i / 3 + 1)) std::this_thread::yield();
    return i;
  };
  CHECK(collect(Counting{9} | data::map(meet, NumParallelCalls{3})) == collect(Counting{9}));
}

TEST_CASE("random_map with several threads has the random numbers of one") {
  const auto with_bits = [](std::int64_t number, const dist::RandomStream& random) {
    return number << 32 | static_cast<std::int64_t>(random.bits(0) >> 32);
  };
  const auto one = data::range(50) | data::shuffle(10, 1) | data::random_map(with_bits, 7);
  const auto three = data::range(50) | data::shuffle(10, 1) | data::random_map(with_bits, 7, NumParallelCalls{3});
  for (const std::uint64_t epoch : {0U, 3U}) CHECK(collect(three, epoch) == collect(one, epoch));
  CHECK(collect(three | data::repeat(2)) == collect(one | data::repeat(2)));
}

TEST_CASE("map with several threads runs ahead by their number, and no further") {
  std::atomic<int> made{0};
  const auto dataset = Counting{100} | data::map(
                                           [&](int i) {
                                             ++made;
                                             return i;
                                           },
                                           NumParallelCalls{3});
  auto iterator = dataset.iterate(0);
  CHECK(settles_at(made, 3));
  int element = -1;
  CHECK(iterator.next(element));
  CHECK(element == 0);
  CHECK(settles_at(made, 4));
}

TEST_CASE("an exception of the function or of the dataset is thrown in place of its element, and again later") {
  const auto check = [](const auto& dataset, const char* message) {
    for (int repetition = 0; repetition < 20; ++repetition) {
      auto iterator = dataset.iterate(0);
      int element = -1;
      for (int expected = 0; expected < 4; ++expected) {
        REQUIRE(iterator.next(element));
        CHECK(element == expected);
      }
      CHECK_THROWS_WITH_AS(iterator.next(element), message, std::runtime_error);
      CHECK_THROWS_WITH_AS(iterator.next(element), message, std::runtime_error);
    }
  };
  const auto breaks = [](int i) {
    if (i == 1) std::this_thread::sleep_for(std::chrono::milliseconds{1});
    if (i >= 4) throw std::runtime_error("element " + std::to_string(i));
    return i;
  };
  for (const std::size_t threads : {1U, 2U, 5U}) {
    check(Counting{10} | data::map(breaks, NumParallelCalls{threads}), "element 4");
    check(Counting{10, 4} | data::map([](int i) { return i; }, NumParallelCalls{threads}), "the source broke");
  }
}

TEST_CASE("a consumer of map with several threads may stop at any time, also during a call") {
  std::atomic<int> calls{0};
  const auto dataset = Counting{1'000'000} | data::map(
                                                 [&](int i) {
                                                   ++calls;
                                                   if (i % 5 == 0)
                                                     std::this_thread::sleep_for(std::chrono::microseconds{50});
                                                   return i;
                                                 },
                                                 NumParallelCalls{4});
  for (int taken = 0; taken < 50; ++taken) {
    auto iterator = dataset.iterate(0);
    int element = -1;
    for (int i = 0; i < taken; ++i) REQUIRE(iterator.next(element));
    CHECK(element == taken - 1);
  }
  const int after = calls;
  CHECK(after <= 50 * 49 / 2 + 50 * 4);
  std::this_thread::sleep_for(std::chrono::milliseconds{5});
  CHECK(calls == after);  // no thread is left
}

TEST_CASE("a pass of map with several threads stays at its end, and can move") {
  const auto dataset = Counting{2} | data::map([](int i) { return i; }, NumParallelCalls{3});
  auto first = dataset.iterate(0);
  int element = -1;
  CHECK(first.next(element));
  auto iterator = std::move(first);
  CHECK(iterator.next(element));
  CHECK(element == 1);
  CHECK_FALSE(iterator.next(element));
  CHECK_FALSE(iterator.next(element));
}

TEST_CASE("map with several threads swaps elements: it allocates one for each thread and one for the consumer") {
  using Rows = dist::Tensor<int>;
  const auto dataset = Counting{300} | data::batch(10) |
                       data::map([](const Rows& rows) { return rows; }, NumParallelCalls{2}, data::RowCount::kept);
  static_assert(data::is_batched<decltype(dataset)> && !data::lends_elements<decltype(dataset)>);
  CHECK(data::known_batch_size(dataset) == 10);
  CHECK(data::partial_batches_of(dataset) == data::PartialBatches::none);
  CHECK(collect(dataset).size() == 30);
  const auto halve = [](const Rows&) { return Rows{dist::Shape{1}}; };
  CHECK_THROWS_WITH_AS(
      collect(Counting{4} | data::batch(2) | data::map(halve, NumParallelCalls{2}, data::RowCount::kept)),
      doctest::Contains("it made 1 of 2"), dist::ShapeMismatch);
}

TEST_CASE("workers shard the source of map with several threads") {
  const auto all = data::range(10) | data::map([](std::int64_t i) { return 10 * i; }, NumParallelCalls{2});
  CHECK(collect(data::auto_shard(all, data::AutoShardPolicy::data, 2, 1)) ==
        std::vector<std::int64_t>{10, 30, 50, 70, 90});
  CHECK(collect(all | data::prefetch(2)) == collect(all));
}

TEST_CASE("map rejects 0 and too many threads") {
  const auto same = [](int i) { return i; };
  CHECK_THROWS_WITH_AS(static_cast<void>(data::map(same, NumParallelCalls{0})), doctest::Contains("0 given, 1 to 1024"),
                       dist::InvalidArgument);
  CHECK_THROWS_AS(static_cast<void>(data::map(same, NumParallelCalls{std::numeric_limits<std::size_t>::max()})),
                  dist::InvalidArgument);
}
