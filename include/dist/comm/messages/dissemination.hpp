#pragma once

#include <cstddef>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/contract.hpp>

namespace dist::detail {

/// To whom a member of a group sends in which round so that after the last round every member knows what all brought:
/// dissemination with radix 4. In round i a member sends what it knows to up to three others, 1, 2 and 3 times 4^i ranks
/// above it, and hears from those below. What it hears overlaps where the number of members is no power of 4: joining the
/// same twice must do no harm.
///
/// With this radix a member sends at most 1.5 log2(P) rounded up to whole rounds, never more than 2 log2(P), messages. Radix 2 would
/// send fewer, log2(P), in twice as many rounds, and messages of one round travel at the same time. Up to four members
/// all talk to each other directly; tests take radix 2, with which three members pass things on.
class Dissemination {
 public:
  Dissemination(std::size_t rank, std::size_t members, std::size_t radix = 4)
      : rank_(rank), members_(members), per_round_(radix - 1) {
    DIST_EXPECT(rank < members && radix >= 2);
    for (std::size_t stride = 1; stride < members; stride *= radix)
      for (std::size_t times = 1; times < radix && times * stride < members; ++times)
        distances_.push_back(times * stride);
  }

  [[nodiscard]] std::size_t members() const noexcept { return members_; }
  [[nodiscard]] std::size_t rounds() const noexcept { return (distances_.size() + per_round_ - 1) / per_round_; }
  /// The partners of all rounds are numbered in their order: those of a round are [`begin(round)`, `end(round)`). No
  /// two of them are the same member.
  [[nodiscard]] std::size_t partners() const noexcept { return distances_.size(); }
  [[nodiscard]] std::size_t begin(std::size_t round) const noexcept { return round * per_round_; }
  [[nodiscard]] std::size_t end(std::size_t round) const noexcept {
    return std::min(begin(round + 1), distances_.size());
  }
  /// The member that this one sends to as partner `number`, and the one that it hears from.
  [[nodiscard]] std::size_t to(std::size_t number) const noexcept {
    const std::size_t above = rank_ + distances_[number];
    return above < members_ ? above : above - members_;
  }
  [[nodiscard]] std::size_t from(std::size_t number) const noexcept {
    return rank_ >= distances_[number] ? rank_ - distances_[number] : rank_ + members_ - distances_[number];
  }
  /// How many members a message of this partner speaks for: its sender and those below.
  [[nodiscard]] std::size_t speaks_for(std::size_t number) const noexcept {
    const std::size_t stride = distances_[begin(number / per_round_)];
    return std::min(stride, members_ - distances_[number]);
  }

 private:
  std::size_t rank_;
  std::size_t members_;
  std::size_t per_round_;  // partners, but for the last round
  std::vector<std::size_t> distances_;
};

}  // namespace dist::detail
