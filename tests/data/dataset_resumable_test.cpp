#include <dist/data/dataset.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include <dist/core/tensor.hpp>
#include <dist/core/track.hpp>
#include <dist/data/batch.hpp>
#include <dist/data/cifar.hpp>
#include <dist/data/csv.hpp>
#include <dist/data/distribute_options.hpp>
#include <dist/data/distributed_dataset.hpp>
#include <dist/data/image_folder.hpp>
#include <dist/data/images.hpp>
#include <dist/data/index_shuffle.hpp>
#include <dist/data/map.hpp>
#include <dist/data/parallel_map.hpp>
#include <dist/data/prefetch.hpp>
#include <dist/data/range.hpp>
#include <dist/data/shuffle.hpp>
#include <dist/data/take_skip.hpp>
#include <dist/data/tensor_slices.hpp>
#include <dist/data/zip.hpp>

#include <doctest/doctest.h>

#include <io/bytes.hpp>
#include <support/temporary_folder.hpp>

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

template <class... Parts>
std::vector<std::int64_t> numbers_of(const std::tuple<Parts...>& parts) {
  return std::apply([](const Parts&... part) { return std::vector<std::int64_t>{part...}; }, parts);
}

template <class D, class I>
std::vector<std::vector<std::int64_t>> rest_of(I& iterator) {
  std::vector<std::vector<std::int64_t>> rest;
  typename D::Element element{};
  while (iterator.next(element)) rest.push_back(numbers_of(element));
  return rest;
}

/// Checks that a pass resumed at any position, from any position, continues like an uninterrupted one.
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

/// A source that counts reads, and may report an unknown size.
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

TEST_CASE("passes over ranges and arrays are resumable") {
  check(data::range(20, 0, -2));
  check(data::range(0));
  dist::Tensor<float> rows{{7, 2}};
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i);
  check(data::tensor_slices(rows));
}

TEST_CASE("passes over the rows of several CSV files are resumable") {
  struct Row {
    std::int64_t number = 0;
  };
  support::TemporaryFolder folder;
  const auto a = folder.write("a.csv", dist_test::bytes("n\n0\n1\n2\n3\n4\n"));
  const auto b = folder.write("b.csv", dist_test::bytes("m,n\n,5\n,6\n,7\n"));
  const auto rows = data::csv(std::vector{a, b, a}, data::column("n", &Row::number)) |
                    data::map([](const Row& row) { return row.number; });
  check(rows);
  check(rows | data::shuffle(4, 5) | data::batch(3));
}

namespace {

/// A format of images with one pixel for each byte of a file.
struct Bytes {
  static constexpr std::string_view extensions[] = {"bytes"};
  static dist::Tensor<std::uint8_t> decode(std::span<const std::byte> bytes, std::size_t channels, const std::string&,
                                           std::size_t) {
    dist::Tensor<std::uint8_t> pixels{{1, bytes.size() / channels, channels}};
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = std::to_integer<std::uint8_t>(bytes[i]);
    return pixels;
  }
};

}  // namespace

TEST_CASE("passes over image folders and CIFAR, and their random changes, are resumable") {
  const support::TemporaryFolder folder;
  for (const char* const name : {"a/0", "a/1", "a/2", "b/3", "b/4", "c/5", "c/6"})
    folder.write(std::string(name) + ".bytes", std::string(4, name[0]) + name[2] + "z");
  const auto pixels = data::map([](const auto& example) { return dist::Tensor<std::uint8_t>{example.x}; });
  const auto images = data::image_folder<std::uint8_t, Bytes>(folder.path());
  check(images | pixels);
  check(images | data::shuffle(3, 5) | data::random_flip(5) | data::random_crop(1, 5) | pixels | data::batch(2));
  std::string records;
  for (char label = 0; label < 5; ++label)
    records += std::string(1, label) + std::string(3072, static_cast<char>(7 * label));
  folder.write("test_batch.bin", records);
  check(data::cifar10<std::uint8_t>(folder.path(), data::Split::test) | data::random_crop(1, 5) | pixels |
        data::batch(2));
}

TEST_CASE("passes over map, take, skip, zip, batch and rebatch are resumable") {
  check(data::range(11) | data::map([](std::int64_t number) { return 10 * number; }));
  check(data::range(11) | data::take(4));
  check(data::range(3) | data::take(4));
  for (const std::size_t skipped : {0U, 4U, 11U, 12U}) check(data::range(11) | data::skip(skipped));
  check(data::range(11) | data::enumerate(5));
  const auto pairs = data::zip(data::range(11), data::range(20, 0, -2));
  check(pairs);
  check(data::zip(data::range(20, 0, -2), data::range(11)));
  check(pairs | data::shuffle(4, 5));
  for (const auto remainder : {data::Remainder::keep, data::Remainder::drop}) {
    check(data::range(23) | data::batch(4, remainder));
    check(data::range(23) | data::batch(4) | data::rebatch(5, remainder));
    check(data::range(23) | data::batch(6) | data::rebatch(2, remainder));
    check(data::range(24) | data::batch(4) | data::rebatch(4, remainder));
    // Batches of unknown sizes.
    check(data::range(23) | data::batch(4) |
          data::map([](const dist::Tensor<std::int64_t>& batch) { return dist::Tensor<std::int64_t>{batch}; }) |
          data::rebatch(5, remainder));
  }
}

TEST_CASE("a resumed shuffle has the same buffer and order") {
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

TEST_CASE("a resumed random_map has the same random numbers for each element") {
  const auto randomly = data::random_map(
      [](std::int64_t number, const dist::RandomStream& random) {
        return 1000 * number + static_cast<std::int64_t>(random.below(1000, 0));
      },
      5);
  check(data::range(13) | randomly);
  check(data::range(13) | data::shuffle(4, 5) | randomly | data::batch(3));
  check(data::range(13) | randomly | data::shuffle(4, 5));
  dist::Tensor<float> images{{11, 3, 4, 2}};
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<float>(i);
  check(data::tensor_slices(images) | data::random_flip(5) | data::random_crop(2, 5) | data::resize_images(2, 3));
}

TEST_CASE("passes over map and random_map with several threads are resumable") {
  const auto numbers = data::range(11) | data::shuffle(4, 5);
  check(numbers | data::map([](std::int64_t number) { return 10 * number; }, data::NumParallelCalls{3}));
  const auto randomly = [](std::int64_t number, const dist::RandomStream& random) {
    return 1000 * number + static_cast<std::int64_t>(random.below(1000, 0));
  };
  check(numbers | data::random_map(randomly, 5, data::NumParallelCalls{2}) | data::batch(3));
}

TEST_CASE("passes over index_shuffle are resumable, with one read for each element") {
  for (const std::int64_t count : {0, 1, 13}) check(data::range(count) | data::index_shuffle(5));
  check(data::range(40) | data::index_shuffle(5, data::Reshuffle::never) | data::batch(3));
  std::size_t reads = 0;
  const Counted counted{1000, reads};
  const auto shuffled = counted | data::index_shuffle(5);
  auto pass = shuffled.iterate(0);
  pass.seek(900);
  std::int64_t element = 0;
  REQUIRE(pass.next(element));
  CHECK(reads == 1);
}

TEST_CASE("a pass over prefetch is resumable") {
  for (const std::size_t ahead : {1U, 3U})
    check(data::range(14) | data::shuffle(5, 5) | data::batch(3) | data::prefetch(ahead));
}

namespace {

/// The numbers of all replicas in each step of a pass, starting at `position`.
template <class D>
std::vector<std::vector<std::int64_t>> steps_from(const D& distributed, std::uint64_t position) {
  auto pass = distributed.iterate(2);
  typename D::Element values(distributed.num_replicas());
  if (position % 2 == 1) static_cast<void>(pass.next(values));  // earlier elements do not matter
  pass.seek(position);
  std::vector<std::vector<std::int64_t>> steps;
  while (pass.next(values)) {
    CHECK(pass.position() == position + steps.size() + 1);
    auto& step = steps.emplace_back();
    for (const auto& rows : values) {
      const auto numbers = numbers_of(rows);
      step.insert(step.end(), numbers.begin(), numbers.end());
    }
  }
  return steps;
}

}  // namespace

TEST_CASE("a distributed pass continues with the same elements under any number of replicas") {
  const auto numbers = data::range(45) | data::shuffle(7, 5);
  const auto of_unknown_sizes = numbers | data::batch(4) | data::map([](const dist::Tensor<std::int64_t>& batch) {
                                  return dist::Tensor<std::int64_t>{batch};
                                });
  const auto check_distributed = [](const auto& dataset, const data::InputOptions& options) {
    const auto all = steps_from(data::distribute_dataset(dataset, 1, {1, 0, 1}, options), 0);
    for (const std::size_t replicas : {1U, 2U, 3U, 4U})
      for (std::size_t position = 0; position <= all.size() + 1; ++position) {
        CAPTURE(replicas);
        CAPTURE(position);
        const auto distributed = data::distribute_dataset(dataset, replicas, {1, 0, replicas}, options);
        static_assert(data::Resumable<data::IteratorOf<std::remove_const_t<decltype(distributed)>>>);
        CHECK(steps_from(distributed, position) ==
              std::vector(all.begin() + static_cast<std::ptrdiff_t>(std::min(position, all.size())), all.end()));
      }
  };
  for (const auto last_step : {data::Remainder::keep, data::Remainder::drop}) {
    const data::InputOptions options{.fetch_ahead = 1, .last_step = last_step};
    check_distributed(numbers | data::batch(6), options);
    check_distributed(numbers | data::batch(9), {data::AutoShardPolicy::data, 0, last_step});
  }
  check_distributed(of_unknown_sizes, {});
}

TEST_CASE("each of several workers continues with its own steps") {
  const auto dataset = data::range(48) | data::batch(6);
  for (const auto policy : {data::AutoShardPolicy::off, data::AutoShardPolicy::data})
    for (const std::size_t worker : {0U, 1U}) {
      const auto distributed = data::distribute_dataset(dataset, 2, {2, worker, 4}, {.auto_shard_policy = policy});
      const auto all = steps_from(distributed, 0);
      CHECK(all.size() == (policy == data::AutoShardPolicy::off ? 16 : 8));
      for (std::size_t position = 1; position < all.size(); ++position)
        CHECK(steps_from(distributed, position) ==
              std::vector(all.begin() + static_cast<std::ptrdiff_t>(position), all.end()));
    }
}

TEST_CASE("a resumed pass does not read the preceding elements") {
  std::size_t reads = 0;
  const auto dataset = Counted{1000, reads} | data::shuffle(10, 5) | data::batch(20);
  auto pass = dataset.iterate(2);
  pass.seek(40);
  CHECK(reads == 10);
  reads = 0;
  const auto second_half = Counted{1000, reads} | data::skip(500);
  auto pass_of_half = second_half.iterate(0);
  pass_of_half.seek(40);
  std::int64_t number = 0;
  REQUIRE(pass_of_half.next(number));
  CHECK(number == 540);
  CHECK(reads == 1);
  reads = 0;
  const auto distributed = data::distribute_dataset(dataset, 2, {1, 0, 2}, {.fetch_ahead = 0});
  auto pass_of_replicas = distributed.iterate(2);
  pass_of_replicas.seek(40);
  CHECK(reads == 10);
}

TEST_CASE("a pass that is not resumable is rejected at compile time") {
  const auto filtered = data::range(9) | data::filter([](std::int64_t number) { return number % 2 == 0; });
  static_assert(!data::Resumable<data::IteratorOf<decltype(filtered)>>);
  static_assert(!data::Resumable<data::IteratorOf<decltype(filtered | data::batch(2))>>);
  static_assert(!data::Resumable<data::IteratorOf<decltype(filtered | data::map([](auto n) { return n; }))>>);
  static_assert(!data::Resumable<data::IteratorOf<decltype(filtered | data::shuffle(2))>>);
  static_assert(!data::Resumable<data::IteratorOf<decltype(filtered | data::batch(2) | data::rebatch(3))>>);
  static_assert(!data::Resumable<data::IteratorOf<decltype(filtered | data::skip(2))>>);
  static_assert(!data::Resumable<data::IteratorOf<decltype(filtered | data::enumerate())>>);
  static_assert(!data::Resumable<data::IteratorOf<decltype(data::zip(data::range(9), filtered))>>);
  CHECK(filtered.cardinality() == data::Cardinality::unknown());
}

TEST_CASE("a position is tracked with the other saved state") {
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
