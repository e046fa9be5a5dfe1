#pragma once

#include <dist/core/error.hpp>
#include <dist/core/text.hpp>
#include <dist/variable/shard_layout.hpp>

namespace dist {

DIST_INLINE std::string part_name(std::string_view name, std::size_t shard) { return concat(name, "/part_", shard); }

DIST_INLINE ShardLayout ShardLayout::div(std::size_t rows, std::size_t shards) {
  ShardLayout layout;
  for (std::size_t shard = 0; shard < shards; ++shard) layout.first_.push_back(shard_of(rows, shard, shards).end);
  return layout;
}
DIST_INLINE ShardLayout ShardLayout::of(std::span<const std::size_t> rows_of_shards) {
  ShardLayout layout;
  for (const std::size_t rows : rows_of_shards) layout.first_.push_back(layout.first_.back() + rows);
  return layout;
}
DIST_INLINE ShardLayout::RowOfShard ShardLayout::place_of(std::size_t row) const noexcept {
  const auto behind = std::upper_bound(first_.begin(), first_.end() - 1, row);
  const auto shard = static_cast<std::size_t>(behind - first_.begin()) - 1;
  return {shard, row - first_[shard]};
}
DIST_INLINE SplitRows ShardLayout::split(std::string_view name, std::span<const std::int64_t> list) const {
  SplitRows split;
  split.rows_.resize(list.size());
  split.places_.resize(list.size());
  split.first_.assign(shards() + 1, 0);
  std::vector<std::size_t> shard_at(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    require_row(name, list[i]);
    shard_at[i] = place_of(static_cast<std::size_t>(list[i])).shard;
    ++split.first_[shard_at[i] + 1];
  }
  std::partial_sum(split.first_.begin(), split.first_.end(), split.first_.begin());
  std::vector<std::size_t> next(split.first_.begin(), split.first_.end() - 1);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::size_t to = next[shard_at[i]]++;
    split.rows_[to] = list[i] - static_cast<std::int64_t>(first_[shard_at[i]]);
    split.places_[to] = i;
  }
  return split;
}
DIST_INLINE void ShardLayout::require_row(std::string_view name, std::int64_t row) const {
  if (row < 0 || static_cast<std::uint64_t>(row) >= rows())
    throw InvalidArgument(concat("Variable ", quoted(name), " has no row ", row),
                          concat("it has ", rows(), " rows, numbered from 0"), "Use row numbers in this range");
}

}  // namespace dist
