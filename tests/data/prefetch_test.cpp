#include <dist/data/prefetch.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <data/sequences.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/map.hpp>
#include <dist/data/shuffle.hpp>
#include <dist/data/take_skip.hpp>

using dist::InvalidArgument;
using dist::data::batch;
using dist::data::Cardinality;
using dist::data::prefetch;
using dist_test::collect;
using dist_test::Counting;
using dist_test::settles_at;

TEST_CASE("prefetch returns the same elements in the same order") {
  for (const std::size_t ahead : {1U, 2U, 3U, 500U}) {
    const auto dataset = Counting{1000} | prefetch(ahead);
    CHECK(dataset.cardinality() == Cardinality::known(1000));
    CHECK(collect(dataset) == collect(Counting{1000}));
  }
  CHECK(collect(Counting{0} | prefetch(1)).empty());
  static_assert(dist::data::is_batched<decltype(Counting{4} | batch(2) | prefetch(1))>);
}

TEST_CASE("each pass of prefetch restarts, with its epoch") {
  const auto plain = Counting{20} | dist::data::shuffle(20, 1);
  const auto ahead = plain | prefetch(2);
  CHECK(collect(ahead, 0) == collect(plain, 0));
  CHECK(collect(ahead, 7) == collect(plain, 7));
  CHECK(collect(plain | prefetch(1) | dist::data::repeat(2)) == collect(plain | dist::data::repeat(2)));
}

TEST_CASE("the producer runs ahead by the size of the ring, and no further") {
  std::atomic<int> made{0};
  const auto counted = Counting{100} | dist::data::map([&](int i) {
                         ++made;
                         return i;
                       });
  const auto dataset = counted | prefetch(3);
  auto iterator = dataset.iterate(0);
  CHECK(settles_at(made, 3));
  int element = -1;
  CHECK(iterator.next(element));
  CHECK(element == 0);
  CHECK(settles_at(made, 4));
}

TEST_CASE("an exception of the producer is thrown in place of the element, and again later") {
  const auto dataset = Counting{10, 4} | prefetch(2);
  auto iterator = dataset.iterate(0);
  int element = -1;
  for (int expected = 0; expected < 4; ++expected) {
    REQUIRE(iterator.next(element));
    CHECK(element == expected);
  }
  CHECK_THROWS_WITH_AS(iterator.next(element), "the source broke", std::runtime_error);
  CHECK_THROWS_AS(iterator.next(element), std::runtime_error);
}

TEST_CASE("a pass stays at its end") {
  const auto dataset = Counting{1} | prefetch(1);
  auto iterator = dataset.iterate(0);
  int element = -1;
  CHECK(iterator.next(element));
  CHECK_FALSE(iterator.next(element));
  CHECK_FALSE(iterator.next(element));
}

TEST_CASE("a consumer may stop at any time") {
  const auto dataset = Counting{1'000'000} | prefetch(4);
  for (int taken = 0; taken < 50; ++taken) {
    auto iterator = dataset.iterate(0);
    int element = -1;
    for (int i = 0; i < taken; ++i) REQUIRE(iterator.next(element));
    CHECK(element == taken - 1);
  }
  for (int i = 0; i < 50; ++i) static_cast<void>((Counting{0} | prefetch(1)).iterate(0));
}

TEST_CASE("prefetch supports slow consumers and slow producers") {
  const auto pause = [](int i) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
    return i;
  };
  CHECK(collect(Counting{50} | dist::data::map(pause) | prefetch(2)) == collect(Counting{50}));
  CHECK(collect(Counting{50} | prefetch(2) | dist::data::map(pause)) == collect(Counting{50}));
}

TEST_CASE("prefetch swaps elements: it allocates only ahead + 1 batches") {
  const auto dataset = Counting{1000} | batch(10) | prefetch(2);
  std::set<const int*> memory;
  auto iterator = dataset.iterate(0);
  dist::Tensor<int> rows;
  for (int first = 0; iterator.next(rows); first += 10) {
    CHECK(rows[0] == first);
    memory.insert(rows.data());
  }
  CHECK(memory.size() == 3);
}

TEST_CASE("prefetch rejects 0 and too many elements") {
  CHECK_THROWS_WITH_AS(static_cast<void>(prefetch(0)), doctest::Contains("0 given, 1 to"), InvalidArgument);
  CHECK_THROWS_AS(static_cast<void>(prefetch(static_cast<std::size_t>(-1))), InvalidArgument);
}

TEST_CASE("a ring of 0 elements makes each element on demand in the calling thread (spec I16)") {
  std::vector<std::thread::id> threads;
  const auto noted = Counting{3} | dist::data::map([&](int i) {
                       threads.push_back(std::this_thread::get_id());
                       return i;
                     });
  const dist::data::PrefetchDataset direct{noted, 0};
  auto iterator = direct.iterate(0);
  int element = -1;
  REQUIRE(iterator.next(element));
  CHECK(element == 0);
  CHECK(threads == std::vector<std::thread::id>{std::this_thread::get_id()});
  CHECK(collect(direct) == collect(Counting{3}));
  CHECK_THROWS_WITH_AS((dist::data::PrefetchDataset{Counting{3}, static_cast<std::size_t>(-1)}),
                       doctest::Contains("given, 0 to"), InvalidArgument);
}
