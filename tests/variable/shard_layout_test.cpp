#include <dist/variable/shard_layout.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>
#include <support/what_throws.hpp>

using dist::IndexRange;
using dist::Shape;
using dist::ShardLayout;
using dist::Tensor;
using Rows = std::vector<std::int64_t>;
using Places = std::vector<std::size_t>;

namespace {

template <class T>
std::vector<std::remove_const_t<T>> list(std::span<T> elements) {
  return {elements.begin(), elements.end()};
}

}  // namespace

TEST_CASE("the first shards have one row more if the division has a remainder (spec J06)") {
  const ShardLayout layout = ShardLayout::div(10, 4);
  CHECK(layout.shards() == 4);
  CHECK(layout.rows() == 10);
  CHECK(layout.rows_of(0) == IndexRange{0, 3});
  CHECK(layout.rows_of(1) == IndexRange{3, 6});
  CHECK(layout.rows_of(2) == IndexRange{6, 8});
  CHECK(layout.rows_of(3) == IndexRange{8, 10});
  const std::size_t sizes[] = {3, 3, 2, 2};
  CHECK(layout == ShardLayout::of(sizes));
}

TEST_CASE("shards are named after the variable (spec J06)") { CHECK(dist::part_name("table", 12) == "table/part_12"); }

TEST_CASE("place_of follows TensorFlow's formula (spec K07)") {
  std::size_t wrong = 0;
  for (std::size_t rows = 1; rows < 40; ++rows)
    for (std::size_t shards = 1; shards <= rows; ++shards) {
      const ShardLayout layout = ShardLayout::div(rows, shards);
      const auto base = static_cast<std::int64_t>(rows / shards), extra = static_cast<std::int64_t>(rows % shards);
      for (std::int64_t row = 0; row < static_cast<std::int64_t>(rows); ++row) {
        const std::int64_t less = row < extra ? -1 : (row - extra) / base;  // TensorFlow's // rounds down
        const std::int64_t shard = std::max(row / (base + 1), less);
        const std::int64_t local = shard < extra ? row % (base + 1) : (row - extra) % base;
        wrong += layout.place_of(static_cast<std::size_t>(row)) !=
                 ShardLayout::RowOfShard{static_cast<std::size_t>(shard), static_cast<std::size_t>(local)};
      }
    }
  CHECK(wrong == 0);
}

TEST_CASE("shards of any sizes, including empty ones, contain each row once") {
  const std::size_t sizes[] = {0, 2, 0, 0, 3, 0};
  const ShardLayout layout = ShardLayout::of(sizes);
  const ShardLayout::RowOfShard places[] = {{1, 0}, {1, 1}, {4, 0}, {4, 1}, {4, 2}};
  for (std::size_t row = 0; row < 5; ++row) CHECK(layout.place_of(row) == places[row]);
}

TEST_CASE("a list of rows is split in order, including repetitions (spec K07)") {
  const Rows rows{9, 0, 4, 0, 9, 3};
  const auto split = ShardLayout::div(10, 3).split("table", rows);  // 4, 3 and 3 rows
  CHECK(split.shards() == 3);
  CHECK(split.size() == 6);
  CHECK(list(split.rows(0)) == Rows{0, 0, 3});
  CHECK(list(split.places(0)) == Places{1, 3, 5});
  CHECK(list(split.rows(1)) == Rows{0});
  CHECK(list(split.places(1)) == Places{2});
  CHECK(list(split.rows(2)) == Rows{2, 2});
  CHECK(list(split.places(2)) == Places{0, 4});
}

TEST_CASE("an empty list is split into empty lists") {
  const auto split = ShardLayout::div(10, 3).split("table", {});
  for (std::size_t shard = 0; shard < 3; ++shard) CHECK(split.count(shard) == 0);
}

TEST_CASE("values are split and stitched together with their rows (spec K07, K08)") {
  const Rows rows{9, 0, 4, 0, 9, 3};
  Tensor<float> values{{6, 2}};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const auto split = ShardLayout::div(10, 3).split("table", rows);
  const auto first = split.slices<float>(0, values, {4, 2});
  CHECK(first == dist::IndexedSlices<float>{{0, 0, 3}, {{3, 2}, {2, 3, 6, 7, 10, 11}}, {4, 2}});
  Tensor<float> stitched{{6, 2}};
  std::fill_n(stitched.data(), stitched.size(), -1.0F);
  const std::size_t sizes[] = {4, 3, 3};
  for (std::size_t shard = 0; shard < 3; ++shard) {
    const auto part = split.slices<float>(shard, values, {sizes[shard], 2});
    split.stitch<float>(shard, part.values(), stitched);
  }
  CHECK(stitched == values);
}

TEST_CASE("a row out of range is rejected with the variable's name") {
  for (const std::int64_t row : {-1, 10})
    CHECK(support::what_throws<dist::InvalidArgument>([&] {
            static_cast<void>(ShardLayout::div(10, 3).split("table", Rows{1, row}));
          }) == dist::concat("Variable 'table' has no row ", row,
                             " (it has 10 rows, numbered from 0). Use row numbers in this range."));
}
