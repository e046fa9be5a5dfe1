/// Which shard of a variable has which of its rows (spec J06, K07).
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

/// What shard `shard` of the variable `name` is called: "name/part_0", "name/part_1", … (spec J06).
[[nodiscard]] std::string part_name(std::string_view name, std::size_t shard);

/// A list of rows, taken apart by shard: made by `ShardLayout::split`. Within a shard rows keep their order, and one that is
/// named twice is there twice.
class SplitRows {
 public:
  /// What shard `shard` has of the list, counted from its own first row.
  [[nodiscard]] std::span<const std::int64_t> rows(std::size_t shard) const noexcept {
    return std::span<const std::int64_t>{rows_}.subspan(first_[shard], count(shard));
  }
  /// At which places of the list these are.
  [[nodiscard]] std::span<const std::size_t> places(std::size_t shard) const noexcept {
    return std::span<const std::size_t>{places_}.subspan(first_[shard], count(shard));
  }
  [[nodiscard]] std::size_t count(std::size_t shard) const noexcept { return first_[shard + 1] - first_[shard]; }
  [[nodiscard]] std::size_t shards() const noexcept { return first_.size() - 1; }
  /// The length of the list.
  [[nodiscard]] std::size_t size() const noexcept { return rows_.size(); }

  /// What belongs to the rows of `shard` among `values`, which has one row for each entry of the list.
  template <class T>
  [[nodiscard]] IndexedSlices<T> slices(std::size_t shard, TensorView<const T> values, const Shape& shard_shape) const {
    IndexedSlices<T> part(count(shard), shard_shape);
    std::copy_n(rows(shard).data(), count(shard), part.indices().data());
    const std::size_t width = values.row_size();
    for (std::size_t i = 0; i < count(shard); ++i)
      std::copy_n(values.data() + places(shard)[i] * width, width, part.values().data() + i * width);
    return part;
  }
  /// Its inverse: puts `gathered`, the values of the rows of `shard`, at their places in `list` (spec K08).
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
  std::vector<std::size_t> places_;  // of each of them in the list
  std::vector<std::size_t> first_;   // where each shard begins, and the end
};

/// How the rows of a variable are divided among its shards: one range of rows after another.
class ShardLayout {
 public:
  /// A row of a shard.
  struct RowOfShard {
    std::size_t shard;
    std::size_t row;
    friend constexpr bool operator==(RowOfShard, RowOfShard) = default;
  };

  /// `rows` rows in `shards` shards by the rule "div": each has rows / shards of them, and the first rows % shards have one
  /// more (spec J06). `shards` is not 0.
  [[nodiscard]] static ShardLayout div(std::size_t rows, std::size_t shards);
  /// Shards of these numbers of rows. There is at least one.
  [[nodiscard]] static ShardLayout of(std::span<const std::size_t> rows_of_shards);

  [[nodiscard]] std::size_t shards() const noexcept { return first_.size() - 1; }
  /// Of all shards.
  [[nodiscard]] std::size_t rows() const noexcept { return first_.back(); }
  /// The rows of the variable that `shard` has.
  [[nodiscard]] IndexRange rows_of(std::size_t shard) const noexcept { return {first_[shard], first_[shard + 1]}; }

  /// Where row `row`, which is less than `rows()`, is. Under the rule "div" this is max(row / (base + 1), (row - extra) / base),
  /// where base is rows / shards and extra the remainder (spec K07).
  [[nodiscard]] RowOfShard place_of(std::size_t row) const noexcept;

  /// Takes a list of rows of the variable `name` apart. Throws InvalidArgument for a row that the variable does not have.
  [[nodiscard]] SplitRows split(std::string_view name, std::span<const std::int64_t> list) const;

  friend bool operator==(const ShardLayout&, const ShardLayout&) = default;

 private:
  ShardLayout() = default;

  void require_row(std::string_view name, std::int64_t row) const;

  std::vector<std::size_t> first_{0};  // the first row of each shard, and the number of rows
};

}  // namespace dist

#ifndef DIST_COMPILED
#include <dist/variable/shard_layout.ipp>
#endif
