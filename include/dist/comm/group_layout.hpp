#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/contract.hpp>

namespace dist {

/// Where the members of the groups stand among all: group by group, in the order of the groups' lowest ranks, and in each
/// group in the order of the members' ranks. So all members are in the order of their ranks if there is one group, or if
/// each group has one member.
class GroupLayout {
 public:
  /// `ranks` are the ranks of all members in that order, `sizes` those of the groups; this member is number `member` of
  /// group `group`.
  GroupLayout(std::vector<std::size_t> ranks, std::vector<std::size_t> sizes, std::size_t group, std::size_t member)
      : ranks_(std::move(ranks)), sizes_(std::move(sizes)), group_(group), member_(member) {
    for (std::size_t earlier = 0; earlier < group; ++earlier) first_ += sizes_[earlier];
    rank_ = ranks_[first_ + member];
    for (std::size_t place = 0; place < ranks_.size(); ++place) in_order_ = in_order_ && ranks_[place] == place;
    DIST_EXPECT(in_order_ || (groups() > 1 && groups() < size()));
  }
  /// `groups` groups of `size` members each, numbered through.
  [[nodiscard]] static GroupLayout uniform(std::size_t groups, std::size_t size, std::size_t group,
                                           std::size_t member) {
    std::vector<std::size_t> ranks(groups * size);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) ranks[rank] = rank;
    return GroupLayout{std::move(ranks), std::vector<std::size_t>(groups, size), group, member};
  }

  /// The layout of what every member has `parts` of, numbered through in the order of the members' ranks, as number
  /// `part` of this member sees it.
  [[nodiscard]] GroupLayout divided(std::size_t parts, std::size_t part) const {
    std::vector<std::size_t> ranks;
    for (const std::size_t rank : ranks_)
      for (std::size_t each = 0; each < parts; ++each) ranks.push_back(rank * parts + each);
    std::vector<std::size_t> sizes = sizes_;
    for (std::size_t& size : sizes) size *= parts;
    return GroupLayout{std::move(ranks), std::move(sizes), group_, member_ * parts + part};
  }

  [[nodiscard]] std::size_t rank() const noexcept { return rank_; }
  [[nodiscard]] std::size_t size() const noexcept { return ranks_.size(); }
  [[nodiscard]] std::size_t group() const noexcept { return group_; }
  [[nodiscard]] std::size_t groups() const noexcept { return sizes_.size(); }
  /// The ranks of a group's members, in the order of their ranks there.
  [[nodiscard]] std::span<const std::size_t> members(std::size_t group) const noexcept {
    std::size_t first = 0;
    for (std::size_t earlier = 0; earlier < group; ++earlier) first += sizes_[earlier];
    return std::span{ranks_}.subspan(first, sizes_[group]);
  }
  /// Where the member of that rank stands.
  struct GroupRank {
    std::size_t group;
    std::size_t member;
  };
  [[nodiscard]] GroupRank place_of(std::size_t rank) const noexcept {
    GroupRank place{0, rank};
    if (!in_order_)
      place.member = static_cast<std::size_t>(std::find(ranks_.begin(), ranks_.end(), rank) - ranks_.begin());
    for (; place.member >= sizes_[place.group]; ++place.group) place.member -= sizes_[place.group];
    return place;
  }
  /// The ranks of all members, group by group.
  [[nodiscard]] std::span<const std::size_t> ranks() const noexcept { return ranks_; }
  /// Whether the groups' members, one group after another, are in the order of their ranks.
  [[nodiscard]] bool in_order() const noexcept { return in_order_; }

 private:
  std::vector<std::size_t> ranks_;
  std::vector<std::size_t> sizes_;
  std::size_t group_;
  std::size_t member_;
  std::size_t first_ = 0;
  std::size_t rank_ = 0;
  bool in_order_ = true;
};

}  // namespace dist
