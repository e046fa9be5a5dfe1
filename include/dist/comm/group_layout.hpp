#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace dist {

/// The division of members into groups. Groups are sorted by lowest rank, and their members by rank. So all members are
/// sorted by rank if there is one group or each group has one member.
class GroupLayout {
 public:
  /// `ranks` are the ranks of all members, group by group; this is member `member` of group `group`.
  GroupLayout(std::vector<std::size_t> ranks, std::vector<std::size_t> sizes, std::size_t group, std::size_t member);
  /// Creates `groups` groups of `size` members each, with consecutive ranks.
  [[nodiscard]] static GroupLayout uniform(std::size_t groups, std::size_t size, std::size_t group, std::size_t member);

  /// Returns the layout with `parts` parts per member, with consecutive ranks, as seen by `part` of this member.
  [[nodiscard]] GroupLayout divided(std::size_t parts, std::size_t part) const;

  /// The rank of this member among all members.
  [[nodiscard]] std::size_t rank() const noexcept { return rank_; }
  /// The number of all members.
  [[nodiscard]] std::size_t size() const noexcept { return ranks_.size(); }
  /// The number of this member's group.
  [[nodiscard]] std::size_t group() const noexcept { return group_; }
  /// The number of groups.
  [[nodiscard]] std::size_t groups() const noexcept { return sizes_.size(); }
  /// The ranks of a group's members, ascending.
  [[nodiscard]] std::span<const std::size_t> members(std::size_t group) const noexcept;
  /// The group of a member, and its number there.
  struct GroupRank {
    std::size_t group;   ///< number of the group
    std::size_t member;  ///< number of the member in its group
  };
  /// Returns the group of member `rank`, and its number there.
  [[nodiscard]] GroupRank place_of(std::size_t rank) const noexcept;
  /// The ranks of all members, group by group.
  [[nodiscard]] std::span<const std::size_t> ranks() const noexcept { return ranks_; }
  /// True if the members, listed group by group, are sorted by rank.
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

#ifndef DIST_COMPILED
#include <dist/comm/group_layout.ipp>
#endif
