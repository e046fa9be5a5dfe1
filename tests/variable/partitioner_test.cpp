#include <dist/variable/partitioner.hpp>

#include <cstddef>
#include <span>

#include <doctest/doctest.h>
#include <support/what_throws.hpp>
#include <variable/tensorflow/partitioners.hpp>

using dist::FixedShards;
using dist::MaxSizeShards;
using dist::MinSizeShards;
using dist::number_of_shards;
using dist::Shape;
using support::what_throws;
namespace fixture = tensorflow_partitioners;

namespace {

/// Returns the number of differences from TensorFlow. `make(argument, max_shards)` makes the partitioner.
template <class Make>
std::size_t differ(std::span<const std::size_t> expected, std::span<const std::size_t> arguments,
                   std::span<const std::size_t> max_shards, const Make& make) {
  std::size_t next = 0, wrong = 0;
  for (const Shape& shape : fixture::shapes)
    for (const std::size_t bytes : fixture::element_bytes)
      for (const std::size_t argument : arguments)
        for (const std::size_t most : max_shards) wrong += make(argument, most)(shape, bytes) != expected[next++];
  CHECK(next == expected.size());
  return wrong;
}

constexpr std::size_t one[] = {1};

}  // namespace

TEST_CASE("FixedShards returns its number, at most one per row (spec K01)") {
  CHECK(differ(fixture::fixed, fixture::num_shards, one, [](auto number, auto) { return FixedShards{number}; }) == 0);
  static_assert(FixedShards{3}({2, 5}, 4) == 2);
}

TEST_CASE("MinSizeShards rounds the number of shards up, like TensorFlow (spec K02)") {
  CHECK(differ(fixture::min_size, fixture::min_shard_bytes, fixture::max_shards_of_min_size, [](auto bytes, auto most) {
          return MinSizeShards{bytes, most};
        }) == 0);
  static_assert(MinSizeShards{.min_shard_bytes = 30, .max_shards = 10}({10}, 4) == 2, "40 bytes are two shards of 20");
  static_assert(MinSizeShards{}({1 << 20}, 4) == 1, "one by default");
}

TEST_CASE("MaxSizeShards limits the size of shards (spec K03)") {
  CHECK(differ(fixture::max_size, fixture::max_shard_bytes, fixture::max_shards_of_max_size, [](auto bytes, auto most) {
          return MaxSizeShards{bytes, most};
        }) == 0);
  static_assert(MaxSizeShards{1}({5, 0}, 4) == 1, "rows of no bytes fit all into one");
}

TEST_CASE("sizes that overflow in bytes count as large") {
  constexpr std::size_t many = std::size_t{1} << 62;
  static_assert(MinSizeShards{.min_shard_bytes = 1 << 20, .max_shards = 7}({many}, 8) == 7);
  static_assert(MaxSizeShards{1 << 20}({2, many}, 8) == 2);
}

TEST_CASE("an argument that is not positive is named (spec K02, K03)") {
  const auto message = [](auto partitioner) {
    return what_throws<dist::InvalidArgument>([&] { static_cast<void>(number_of_shards(partitioner, "w", {4}, 4)); });
  };
  CHECK(message(FixedShards{0}) ==
        "Argument num_shards of FixedShards is 0 (it must be positive). Give num_shards a value of 1 or more.");
  CHECK(message(MinSizeShards{.min_shard_bytes = 0}) ==
        "Argument min_shard_bytes of MinSizeShards is 0 (it must be positive). Give min_shard_bytes a value of 1 or "
        "more.");
  CHECK(message(MinSizeShards{.max_shards = 0}) ==
        "Argument max_shards of MinSizeShards is 0 (it must be positive). Give max_shards a value of 1 or more.");
  CHECK(message(MaxSizeShards{0}) ==
        "Argument max_shard_bytes of MaxSizeShards is 0 (it must be positive). Give max_shard_bytes a value of 1 or "
        "more.");
}

TEST_CASE("a custom partitioner gives the number of shards of the first axis (spec J05, K04)") {
  std::size_t asked_bytes = 0;
  const auto two_rows_each = [&](const Shape& shape, std::size_t element_bytes) {
    asked_bytes = element_bytes;
    return static_cast<int>(shape[0] / 2);
  };
  CHECK(number_of_shards(two_rows_each, "w", {10, 3}, 8) == 5);
  CHECK(asked_bytes == 8);
}

TEST_CASE("the number of shards is at most the number of rows (spec J06)") {
  CHECK(number_of_shards([](const Shape&, std::size_t) { return 100; }, "w", {10, 3}, 4) == 10);
}

TEST_CASE("scalars and variables without rows are not divided or passed to a partitioner (spec J05)") {
  const auto never = [](const Shape&, std::size_t) -> int { throw 1; };
  CHECK(number_of_shards(never, "w", {}, 4) == 1);
  CHECK(number_of_shards(never, "w", {0, 3}, 4) == 1);
}

TEST_CASE("a partitioner that returns less than 1 is rejected with the variable's name (spec J05)") {
  for (const int shards : {0, -3})
    CHECK(what_throws<dist::InvalidArgument>([&] {
            static_cast<void>(number_of_shards([&](const Shape&, std::size_t) { return shards; }, "table", {4, 3}, 4));
          }) ==
          dist::concat("A partitioner divides variable 'table' into ", shards,
                       " shards (the variable has shape [4, 3]). Return the number of shards, which is 1 or more."));
}
