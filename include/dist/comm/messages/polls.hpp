#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/contract.hpp>

namespace dist::detail {

/// The schedule of a dissemination with radix 4, after which every member has the information of all. In round i a
/// member sends its information to up to three others, 1, 2 and 3 times 4^i ranks above it, and receives from those
/// below. Unless the number of members is a power of 4, information arrives more than once, so joining must be
/// idempotent.
///
/// A member sends at most 1.5 log2(P) messages, rounded up to whole rounds, and never more than 2 log2(P). Radix 2
/// would need only log2(P) messages, but twice as many rounds, and the messages of a round travel at the same time. Up
/// to four members communicate directly; tests use radix 2, with which even three members forward messages.
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
  /// The number of partners in all rounds, all different and numbered in order. A round has [`begin(round)`,
  /// `end(round)`).
  [[nodiscard]] std::size_t partners() const noexcept { return distances_.size(); }
  [[nodiscard]] std::size_t begin(std::size_t round) const noexcept { return round * per_round_; }
  [[nodiscard]] std::size_t end(std::size_t round) const noexcept {
    return std::min(begin(round + 1), distances_.size());
  }
  /// The member to which this one sends as partner `number`, and the one from which it receives.
  [[nodiscard]] std::size_t to(std::size_t number) const noexcept {
    const std::size_t above = rank_ + distances_[number];
    return above < members_ ? above : above - members_;
  }
  [[nodiscard]] std::size_t from(std::size_t number) const noexcept {
    return rank_ >= distances_[number] ? rank_ - distances_[number] : rank_ + members_ - distances_[number];
  }
  /// The number of members whose information a message of this partner has: its sender and members below.
  [[nodiscard]] std::size_t speaks_for(std::size_t number) const noexcept {
    const std::size_t stride = distances_[begin(number / per_round_)];
    return std::min(stride, members_ - distances_[number]);
  }

 private:
  std::size_t rank_;
  std::size_t members_;
  std::size_t per_round_;  // partners per round, except the last one
  std::vector<std::size_t> distances_;
};

/// Poll of a group by messages: whether a condition holds on any member. The protocol of one member, except sending,
/// receiving and waiting: call `ask`, then `hear` for each received message and `advance`, until `knows_answer`.
/// Messages between two members must keep their order.
///
/// Members ask questions in passes, which may be nested, and which all begin in the same order. Messages for future
/// questions are kept; messages for completed passes are dropped.
///
/// Answers spread by dissemination (`Dissemination`), with O(log P) messages per member and question. A member on which
/// the condition holds already knows the answer, and sends it to all its partners at once, as does a member that
/// receives this answer. Only the others forward messages round by round while they wait. So no member waits for one
/// that has its answer and may be computing.
///
/// A member whose pass ends differently notifies all others directly, at once.
class Polls {
 public:
  struct Message {
    enum class Kind : std::uint8_t {
      no,     ///< not on the members that the sender represents
      yes,    ///< on some member
      late,   ///< a member has not reached the question in time
      left,   ///< a member has left, and does not reach the question
      failed  ///< a member does not reach the question; reason in `why`
    };

    /// True if the message ends the pass.
    [[nodiscard]] bool stops() const noexcept { return kind > Kind::yes; }
    /// The number of used bytes.
    [[nodiscard]] std::size_t bytes() const noexcept {
      return offsetof(Message, why) + (kind == Kind::failed ? std::strlen(why.data()) + 1 : 0);
    }

    std::uint64_t pass = 0;
    std::uint64_t question = 0;  ///< in its pass, from 1
    std::uint32_t who = 0;
    std::uint8_t partner = 0;  ///< number in each other's schedule
    Kind kind = Kind::no;
    std::array<char, 1023> why{};
  };
  using Kind = Message::Kind;

  explicit Polls(std::size_t rank, Dissemination schedule) : rank_(rank), schedule_(std::move(schedule)) {}
  Polls(std::size_t rank, std::size_t members) : Polls(rank, Dissemination{rank, members}) {}

  [[nodiscard]] const Dissemination& schedule() const noexcept { return schedule_; }

  /// Begins a pass. Returns its number.
  [[nodiscard]] std::uint64_t begin() {
    Pass& pass = passes_.emplace_back();
    pass.number = ++begun_;
    pass.round = schedule_.rounds();
    pass.heard.assign(schedule_.partners(), true);
    return begun_;
  }
  void end(std::uint64_t pass) noexcept {
    std::erase_if(passes_, [&](const Pass& each) { return each.number == pass; });
    std::erase_if(early_, [&](const Message& message) { return message.pass == pass; });
  }

  /// Asks the next question of a pass, whose previous one must be settled. Calls `send(partner, message)`, like
  /// `advance`.
  template <class Send>
  void ask(std::uint64_t pass, bool holds, Send&& send) {
    DIST_EXPECT(is_settled(pass));
    Pass& asking = find(pass);
    ++asking.question;
    asking.holds = holds;
    asking.round = 0;
    asking.heard.assign(schedule_.partners(), false);
    tell(asking, 0, holds ? schedule_.partners() : schedule_.end(0), send);
    advance(pass, send);
  }
  void hear(const Message& message) {
    if (message.pass > begun_ || is_open(message.pass)) early_.push_back(message);
  }
  /// Processes the received messages of a pass.
  template <class Send>
  void advance(std::uint64_t pass, Send&& send) {
    Pass& asking = find(pass);
    bool holds = asking.holds;
    std::erase_if(early_, [&](const Message& message) {
      if (message.pass != pass || message.question != asking.question || message.stops()) return false;
      asking.heard[message.partner] = true;
      holds = holds || message.kind == Kind::yes;
      return true;
    });
    if (holds && !asking.holds) {
      asking.holds = true;
      tell(asking, schedule_.end(asking.round), schedule_.partners(), send);
    }
    while (!knows_answer(pass) && round_has_come(asking))
      if (++asking.round < schedule_.rounds())
        tell(asking, schedule_.begin(asking.round), schedule_.end(asking.round), send);
  }

  /// True if the answer to the last question of a pass is known, after which this member forwards no messages.
  [[nodiscard]] bool knows_answer(std::uint64_t pass) const noexcept {
    const Pass& asked = find(pass);
    return asked.holds || asked.round == schedule_.rounds();
  }
  [[nodiscard]] bool answer(std::uint64_t pass) const noexcept { return find(pass).holds; }
  /// True if all messages about the last question have arrived.
  [[nodiscard]] bool is_settled(std::uint64_t pass) const noexcept {
    const std::vector<bool>& heard = find(pass).heard;
    return std::find(heard.begin(), heard.end(), false) == heard.end();
  }

  /// Returns the first known message that ends a pass before the answer to its last question, or null.
  [[nodiscard]] const Message* find_stop(std::uint64_t pass) const noexcept {
    const Message* first = nullptr;
    for (const Message& message : early_)
      if (message.stops() && message.pass == pass && message.question <= find(pass).question &&
          (first == nullptr || message.question < first->question))
        first = &message;
    return first;
  }
  /// Records that a member does not reach the last question of a pass. Returns the message for all other members.
  [[nodiscard]] Message stop(std::uint64_t pass, Kind kind, std::size_t who) {
    Message message;
    message.pass = pass;
    message.question = find(pass).question;
    message.kind = kind;
    message.who = static_cast<std::uint32_t>(who);
    early_.push_back(message);
    return message;
  }
  /// Ends a pass, because this member does not reach its next question. Returns the message for all other members;
  /// empty if the member that ended the pass notifies them. Long texts are truncated.
  [[nodiscard]] std::optional<Message> fail(std::uint64_t pass, std::string_view why) const {
    if (find_stop(pass) != nullptr) return std::nullopt;
    Message message;
    message.pass = pass;
    message.question = find(pass).question + 1;
    message.kind = Kind::failed;
    message.who = static_cast<std::uint32_t>(rank_);
    std::memcpy(message.why.data(), why.data(), std::min(why.size(), message.why.size() - 1));
    return message;
  }

  /// Calls `visit(peer, speaks_for)` for each awaited member: for the answer or, if it is known, until the question is
  /// settled. `speaks_for` counts the members that its message represents: the peer and those before it.
  template <class Visit>
  void for_each_awaited(std::uint64_t pass, Visit&& visit) const {
    const Pass& asked = find(pass);
    const bool knows = knows_answer(pass);
    const std::size_t end = knows ? schedule_.partners() : schedule_.end(asked.round);
    for (std::size_t i = knows ? 0 : schedule_.begin(asked.round); i < end; ++i)
      if (!asked.heard[i]) visit(schedule_.from(i), schedule_.speaks_for(i));
  }

 private:
  struct Pass {
    std::uint64_t number = 0;
    std::uint64_t question = 0;
    bool holds = false;         // known to this member
    std::size_t round = 0;      // of the awaited messages
    std::vector<bool> heard{};  // per partner
  };

  template <class Passes>
  [[nodiscard]] static auto find_in(Passes& passes, std::uint64_t pass) noexcept {
    return std::find_if(passes.begin(), passes.end(), [&](const Pass& each) { return each.number == pass; });
  }
  [[nodiscard]] bool is_open(std::uint64_t pass) const noexcept { return find_in(passes_, pass) != passes_.end(); }
  [[nodiscard]] const Pass& find(std::uint64_t pass) const noexcept {
    DIST_EXPECT(is_open(pass));
    return *find_in(passes_, pass);
  }
  [[nodiscard]] Pass& find(std::uint64_t pass) noexcept {
    DIST_EXPECT(is_open(pass));
    return *find_in(passes_, pass);
  }
  [[nodiscard]] bool round_has_come(const Pass& pass) const noexcept {
    for (std::size_t i = schedule_.begin(pass.round); i < schedule_.end(pass.round); ++i)
      if (!pass.heard[i]) return false;
    return true;
  }
  template <class Send>
  static void tell(const Pass& pass, std::size_t begin, std::size_t end, Send&& send) {
    Message message;
    message.pass = pass.number;
    message.question = pass.question;
    message.kind = pass.holds ? Kind::yes : Kind::no;
    for (std::size_t i = begin; i < end; ++i) {
      message.partner = static_cast<std::uint8_t>(i);
      send(i, message);
    }
  }

  std::size_t rank_;
  Dissemination schedule_;
  std::uint64_t begun_ = 0;
  std::vector<Pass> passes_;
  std::vector<Message> early_;  // messages for future questions, and messages that end passes
};

}  // namespace dist::detail
