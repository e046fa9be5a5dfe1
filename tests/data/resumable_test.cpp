#include <dist/data/resumable.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <dist/core/tensor.hpp>
#include <dist/core/track.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/filter.hpp>
#include <dist/data/map.hpp>
#include <dist/data/range.hpp>
#include <dist/data/rebatch.hpp>
#include <dist/data/shuffle.hpp>
#include <dist/data/tensor_slices.hpp>

#include <doctest/doctest.h>

namespace data = dist::data;

namespace {

/// All numbers of an element.
std::vector<std::int64_t> numbers_of(std::int64_t number) { return {number}; }
template <class T>
std::vector<std::int64_t> numbers_of(const T& tensor) {
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < tensor.size(); ++i) numbers.push_back(static_cast<std::int64_t>(tensor.data()[i]));
  return numbers;
}

template <class D, class I>
std::vector<std::vector<std::int64_t>> rest_of(I& iterator) {
  std::vector<std::vector<std::int64_t>> rest;
  typename D::Element element{};
  while (iterator.next(element)) rest.push_back(numbers_of(element));
  return rest;
}

/// A pass that is taken up anywhere, from anywhere, goes on as the one that was left would have.
template <class D>
void check(const D& dataset) {
  static_assert(data::Resumable<data::IteratorOf<D>>);
  for (const std::uint64_t epoch : {0U, 3U}) {
    auto first = dataset.iterate(epoch);
    CHECK(first.position() == 0);
    const auto all = rest_of<D>(first);
    CHECK(first.position() == all.size());
    for (std::size_t from = 0; from <= all.size(); from += 3)
      for (std::size_t to = 0; to <= all.size() + 1; ++to) {
        auto pass = dataset.iterate(epoch);
        typename D::Element element{};
        for (std::size_t i = 0; i < from; ++i) REQUIRE(pass.next(element));
        CHECK(pass.position() == from);
        pass.seek(to);
        if (to <= all.size()) CHECK(pass.position() == to);
        const std::vector<std::vector<std::int64_t>> expected(
            all.begin() + static_cast<std::ptrdiff_t>(std::min(to, all.size())), all.end());
        CHECK(rest_of<D>(pass) == expected);
      }
  }
}

/// A source that counts what is read of it, and may keep its size to itself.
class Counted : public data::DatasetRange<Counted> {
 public:
  using Element = std::int64_t;
  Counted(std::int64_t count, std::size_t& reads, bool tells = true)
      : numbers_(data::range(count)), reads_(&reads), tells_(tells) {}

  class Iterator {
   public:
    Iterator(const Counted& dataset) : upstream_(dataset.numbers_.iterate(0)), reads_(dataset.reads_) {}
    bool next(std::int64_t& element) {
      ++*reads_;
      return upstream_.next(element);
    }
    [[nodiscard]] std::uint64_t position() const { return upstream_.position(); }
    void seek(std::uint64_t position) { upstream_.seek(position); }

   private:
    data::RangeDataset::Iterator upstream_;
    std::size_t* reads_;
  };

  [[nodiscard]] Iterator iterate(std::uint64_t) const { return Iterator{*this}; }
  [[nodiscard]] data::Cardinality cardinality() const {
    return tells_ ? numbers_.cardinality() : data::Cardinality::unknown();
  }

 private:
  data::RangeDataset numbers_;
  std::size_t* reads_;
  bool tells_;
};

}  // namespace

TEST_CASE("sources are taken up where they were left") {
  check(data::range(20, 0, -2));
  check(data::range(0));
  dist::Tensor<float> rows{{7, 2}};
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i);
  check(data::tensor_slices(rows));
}

TEST_CASE("so are maps, batches and other batches of them, the last one too") {
  check(data::range(11) | data::map([](std::int64_t number) { return 10 * number; }));
  for (const auto remainder : {data::Remainder::keep, data::Remainder::drop}) {
    check(data::range(23) | data::batch(4, remainder));
    check(data::range(23) | data::batch(4) | data::rebatch(5, remainder));
    check(data::range(23) | data::batch(6) | data::rebatch(2, remainder));
    check(data::range(24) | data::batch(4) | data::rebatch(4, remainder));
    // Of batches whose sizes nobody knows.
    check(data::range(23) | data::batch(4) |
          data::map([](const dist::Tensor<std::int64_t>& batch) { return dist::Tensor<std::int64_t>{batch}; }) |
          data::rebatch(5, remainder));
  }
}

TEST_CASE("so is a shuffle, with the elements in its buffer and the order that was drawn") {
  std::size_t reads = 0;
  for (const std::size_t buffer : {1U, 4U, 12U, 13U, 14U, 100U}) {
    CAPTURE(buffer);
    check(data::range(13) | data::shuffle(buffer, 5));
    check(data::range(13) | data::shuffle(buffer, 5, data::Reshuffle::never));
    check(Counted{13, reads, false} | data::shuffle(buffer, 5));
    check(data::range(40) | data::shuffle(buffer, 5) | data::batch(3));
    check(data::range(13) | data::shuffle(buffer, 5) | data::shuffle(4, 6));
  }
}

TEST_CASE("what lies before is not read again") {
  std::size_t reads = 0;
  const auto dataset = Counted{1000, reads} | data::shuffle(10, 5) | data::batch(20);
  auto pass = dataset.iterate(2);
  pass.seek(40);
  CHECK(reads == 10);
}

TEST_CASE("a pass that cannot be taken up says so when the program is compiled") {
  const auto filtered = data::range(9) | data::filter([](std::int64_t number) { return number % 2 == 0; });
  static_assert(!data::Resumable<data::IteratorOf<decltype(filtered)>>);
  static_assert(!data::Resumable<data::IteratorOf<decltype(filtered | data::batch(2))>>);
  static_assert(!data::Resumable<data::IteratorOf<decltype(filtered | data::map([](auto n) { return n; }))>>);
  static_assert(!data::Resumable<data::IteratorOf<decltype(filtered | data::shuffle(2))>>);
  static_assert(!data::Resumable<data::IteratorOf<decltype(filtered | data::batch(2) | data::rebatch(3))>>);
  CHECK(filtered.cardinality() == data::Cardinality::unknown());
}

TEST_CASE("a position is tracked as what else outlives a run") {
  data::Position position{.epoch = 3, .elements = 70};
  std::vector<std::string> keys;
  std::uint64_t sum = 0;
  dist::walk(position, [&](std::string_view key, const std::uint64_t& number) {
    keys.emplace_back(key);
    sum += number;
  });
  CHECK(keys == std::vector<std::string>{"epoch", "elements"});
  CHECK(sum == 73);
}
