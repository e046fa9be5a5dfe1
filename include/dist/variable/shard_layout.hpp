/// The distribution of a variable's rows over shards (spec J06, K07).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/index_range.hpp>
#include <dist/core/indexed_slices.hpp>
#include <dist/core/tensor.hpp>

namespace dist {

/// Returns the name of shard `shard` of the variable `name`: "name/part_0", "name/part_1", … (spec J06).
[[nodiscard]] std::string part_name(std::string_view name, std::size_t shard);

/// A list of rows, split by shard: made by `ShardLayout::split`. Within a shard, the order and repetitions of rows are
/// kept.
class SplitRows {
 public:
  /// Returns the rows of shard `shard` in the list, counted from the shard's first row.
  [[nodiscard]] std::span<const std::int64_t> rows(std::size_t shard) const noexcept {
    return std::span<const std::int64_t>{rows_}.subspan(first_[shard], count(shard));
  }
  /// Returns the positions of these rows in the list.
  [[nodiscard]] std::span<const std::size_t> places(std::size_t shard) const noexcept {
    return std::span<const std::size_t>{places_}.subspan(first_[shard], count(shard));
  }
  /// The number of rows of the list in `shard`.
  [[nodiscard]] std::size_t count(std::size_t shard) const noexcept { return first_[shard + 1] - first_[shard]; }
  /// The number of shards of the variable, including shards without rows in the list.
  [[nodiscard]] std::size_t shards() const noexcept { return first_.size() - 1; }
  /// The length of the list.
  [[nodiscard]] std::size_t size() const noexcept { return rows_.size(); }

  /// Returns the slices of `values` for `shard`; `values` has one row per entry of the list.
  template <class T>
  [[nodiscard]] IndexedSlices<T> slices(std::size_t shard, TensorView<const T> values, const Shape& shard_shape) const {
    IndexedSlices<T> part(count(shard), shard_shape);
    std::copy_n(rows(shard).data(), count(shard), part.indices().data());
    const std::size_t width = values.row_size();
    for (std::size_t i = 0; i < count(shard); ++i)
      std::copy_n(values.data() + places(shard)[i] * width, width, part.values().data() + i * width);
    return part;
  }
  /// Inverse of `slices`: copies `gathered`, the values of the rows of `shard`, to their positions in `list` (spec
  /// K08).
  template <class T>
  void stitch(std::size_t shard, TensorView<const T> gathered, TensorView<T> list) const {
    const std::size_t width = list.row_size();
    for (std::size_t i = 0; i < count(shard); ++i)
      std::copy_n(gathered.data() + i * width, width, list.data() + places(shard)[i] * width);
  }

 private:
  friend class ShardLayout;
  SplitRows() = default;

  std::vector<std::int64_t> rows_;   // shard by shard
  std::vector<std::size_t> places_;  // their positions in the list
  std::vector<std::size_t> first_;   // start of each shard, and the end
};

/// The distribution of a variable's rows over its shards, as consecutive ranges.
class ShardLayout {
 public:
  /// A row of a shard.
  struct RowOfShard {
    std::size_t shard;  ///< index of the shard
    std::size_t row;    ///< counted from the shard's first row
    friend constexpr bool operator==(RowOfShard, RowOfShard) = default;
  };

  /// Divides `rows` rows into `shards` shards, at least 1, by the "div" rule: each has rows / shards rows, and the
  /// first rows % shards have one more (spec J06).
  [[nodiscard]] static ShardLayout div(std::size_t rows, std::size_t shards);
  /// Makes shards with these numbers of rows, at least one shard.
  [[nodiscard]] static ShardLayout of(std::span<const std::size_t> rows_of_shards);

  /// The number of shards.
  [[nodiscard]] std::size_t shards() const noexcept { return first_.size() - 1; }
  /// The number of rows of the variable.
  [[nodiscard]] std::size_t rows() const noexcept { return first_.back(); }
  /// Returns the rows of the variable in `shard`.
  [[nodiscard]] IndexRange rows_of(std::size_t shard) const noexcept { return {first_[shard], first_[shard + 1]}; }

  /// Returns the shard and position of row `row`, which must be less than `rows()`. Under the "div" rule the shard is
  /// max(row / (base + 1), (row - extra) / base), where base is rows / shards and extra the remainder (spec K07).
  [[nodiscard]] RowOfShard place_of(std::size_t row) const noexcept;

  /// Splits a list of rows of the variable `name`. Throws InvalidArgument if a row is out of range.
  [[nodiscard]] SplitRows split(std::string_view name, std::span<const std::int64_t> list) const;

  friend bool operator==(const ShardLayout&, const ShardLayout&) = default;

 private:
  ShardLayout() = default;

  void require_row(std::string_view name, std::int64_t row) const;

  std::vector<std::size_t> first_{0};  // first row of each shard, and the number of rows
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/variable/shard_layout.ipp>
#endif
