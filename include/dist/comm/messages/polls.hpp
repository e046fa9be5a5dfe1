#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include <dist/comm/messages/dissemination.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/contract.hpp>

namespace dist::detail {

/// How one member of a group finds out, by messages, whether something holds on any of them. It is all of the protocol
/// but sending, receiving and waiting, which belong to the caller: `ask`, then `hear` of each message that has come, and
/// `advance`, until `knows_answer`. Messages from one member to another arrive in the order of sending.
///
/// Members ask question after question in passes, which they begin in the same order, and which may lie in each other.
/// What comes for a question that this member has not asked yet waits for it; what comes for a pass that is over is
/// dropped.
///
/// Answers travel by dissemination (`Dissemination`): for each question a member sends and receives O(log P) messages.
/// A member on which it holds knows the answer, and tells the partners of all rounds at once; so does one that hears
/// of it. Only the others pass on what they hear, round by round, and they wait for the answer. So nobody ever waits for a
/// message of a member that has its answer, which may be computing.
///
/// A member whose pass ends in another way than those of the others tells all of them itself, at once.
class Polls {
 public:
  struct Message {
    enum class Kind : std::uint8_t {
      no,     ///< it holds on none of those for which the sender speaks
      yes,    ///< it holds on some member
      late,   ///< `who` has not come to the question in time
      left,   ///< `who` has left for good, and does not come to the question
      failed  ///< `who` does not come to the question; `why` says more
    };

    /// Whether it ends the pass instead of answering the question.
    [[nodiscard]] bool stops() const noexcept { return kind > Kind::yes; }
    /// How many bytes have a meaning.
    [[nodiscard]] std::size_t bytes() const noexcept {
      return offsetof(Message, why) + (kind == Kind::failed ? std::strlen(why.data()) + 1 : 0);
    }

    std::uint64_t pass = 0;
    std::uint64_t question = 0;  ///< of its pass, from 1 on
    std::uint32_t who = 0;
    std::uint8_t partner = 0;  ///< the number that sender and receiver have for each other
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

  /// Asks the next question of a pass whose last one is settled. Calls `send(partner, message)`, as `advance` does.
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
  /// Goes as far in a pass as what has come allows.
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

  /// Whether the answer to the last question of a pass is known: this member passes on nothing any more.
  [[nodiscard]] bool knows_answer(std::uint64_t pass) const noexcept {
    const Pass& asked = find(pass);
    return asked.holds || asked.round == schedule_.rounds();
  }
  [[nodiscard]] bool answer(std::uint64_t pass) const noexcept { return find(pass).holds; }
  /// Whether all messages about it have come.
  [[nodiscard]] bool is_settled(std::uint64_t pass) const noexcept {
    const std::vector<bool>& heard = find(pass).heard;
    return std::find(heard.begin(), heard.end(), false) == heard.end();
  }

  /// What ends a pass before the answer to its last question has come: the first that is known. None, where nothing is.
  [[nodiscard]] const Message* find_stop(std::uint64_t pass) const noexcept {
    const Message* first = nullptr;
    for (const Message& message : early_)
      if (message.stops() && message.pass == pass && message.question <= find(pass).question &&
          (first == nullptr || message.question < first->question))
        first = &message;
    return first;
  }
  /// This member has found that `who` does not come to the last question of a pass. Returns what all others are told.
  [[nodiscard]] Message stop(std::uint64_t pass, Kind kind, std::size_t who) {
    Message message;
    message.pass = pass;
    message.question = find(pass).question;
    message.kind = kind;
    message.who = static_cast<std::uint32_t>(who);
    early_.push_back(message);
    return message;
  }
  /// This member does not come to the next question of a pass. Returns what all others are told; nothing where they hear
  /// from the member that found it why the pass is over. A text that does not fit is cut.
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

  /// Calls `visit(peer, speaks_for)` for each one whose message this member waits for: for the answer or, where that is
  /// known, until the question is settled. A message speaks for its sender and so many before it, counted with it.
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
    bool holds = false;         // as far as this member knows
    std::size_t round = 0;      // whose messages it waits for
    std::vector<bool> heard{};  // by partner
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
  std::vector<Pass> passes_;    // that are not over
  std::vector<Message> early_;  // what has come and was not wanted yet, and what stops passes
};

}  // namespace dist::detail
