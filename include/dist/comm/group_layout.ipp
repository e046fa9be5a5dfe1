#pragma once

#include <utility>

#include <dist/comm/group_layout.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/config.hpp>
#include <dist/core/contract.hpp>

namespace dist {

DIST_INLINE GroupLayout::GroupLayout(std::vector<std::size_t> ranks, std::vector<std::size_t> sizes, std::size_t group,
                                     std::size_t member)
    : ranks_(std::move(ranks)), sizes_(std::move(sizes)), group_(group), member_(member) {
  for (std::size_t earlier = 0; earlier < group; ++earlier) first_ += sizes_[earlier];
  rank_ = ranks_[first_ + member];
  for (std::size_t place = 0; place < ranks_.size(); ++place) in_order_ = in_order_ && ranks_[place] == place;
  DIST_EXPECT(in_order_ || (groups() > 1 && groups() < size()));
}

DIST_INLINE GroupLayout GroupLayout::uniform(std::size_t groups, std::size_t size, std::size_t group,
                                             std::size_t member) {
  std::vector<std::size_t> ranks(groups * size);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) ranks[rank] = rank;
  return GroupLayout{std::move(ranks), std::vector<std::size_t>(groups, size), group, member};
}

DIST_INLINE GroupLayout GroupLayout::divided(std::size_t parts, std::size_t part) const {
  std::vector<std::size_t> ranks;
  for (const std::size_t rank : ranks_)
    for (std::size_t each = 0; each < parts; ++each) ranks.push_back(rank * parts + each);
  std::vector<std::size_t> sizes = sizes_;
  for (std::size_t& size : sizes) size *= parts;
  return GroupLayout{std::move(ranks), std::move(sizes), group_, member_ * parts + part};
}

DIST_INLINE std::span<const std::size_t> GroupLayout::members(std::size_t group) const noexcept {
  std::size_t first = 0;
  for (std::size_t earlier = 0; earlier < group; ++earlier) first += sizes_[earlier];
  return std::span{ranks_}.subspan(first, sizes_[group]);
}

DIST_INLINE GroupLayout::GroupRank GroupLayout::place_of(std::size_t rank) const noexcept {
  GroupRank place{0, rank};
  if (!in_order_)
    place.member = static_cast<std::size_t>(std::find(ranks_.begin(), ranks_.end(), rank) - ranks_.begin());
  for (; place.member >= sizes_[place.group]; ++place.group) place.member -= sizes_[place.group];
  return place;
}

}  // namespace dist
