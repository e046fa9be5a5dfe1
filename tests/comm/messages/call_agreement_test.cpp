#include <dist/comm/messages/call_agreement.hpp>
// optimised

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <support/interleavings.hpp>

namespace {

using dist::detail::CallAgreement;
using dist::detail::Notice;
using State = CallAgreement::State;

constexpr dist::CollectiveCall one_call{.operation = "all_reduce", .elements = 1};
constexpr dist::CollectiveCall other_call{.operation = "all_reduce", .elements = 2};

/// A member's action in a run.
enum class Action : unsigned char { call, call_otherwise, fail, call_then_fail };
/// A member's result of the call of a run.
enum class Outcome : unsigned char { none, met, different, peer_failed, own_failure };

constexpr std::size_t runs = 3;
using Script = std::vector<std::array<Action, runs>>;  // each member's actions in its runs

/// Members that run their scripts, and the messages between them. Messages of one kind between two members keep their
/// order; otherwise the order of arrival is arbitrary.
class Group {
 public:
  explicit Group(const Script& script) : script_(script) {
    for (std::size_t rank = 0; rank < script.size(); ++rank) members_.push_back({CallAgreement{rank, script.size()}});
  }

  [[nodiscard]] std::size_t steps() const { return list().size(); }
  void take(std::size_t number) {
    const Step step = list()[number];
    Member& member = members_[step.rank];
    member.history += static_cast<char>('0' + static_cast<int>(step.kind));
    member.history += static_cast<char>('0' + step.from);
    switch (step.kind) {
      case Kind::go:
        go(step.rank);
        break;
      case Kind::calls:
        for (std::size_t partner = 0; partner < member.meeting.schedule().partners(); ++partner)
          while (member.meeting.wants(partner)) member.meeting.receive(partner, pop(calls_[{step.rank, partner}]));
        break;
      case Kind::notice: {
        const auto thrown = member.meeting.board().hear({pop(notices_[{step.rank, step.from}]), step.from});
        if (thrown) end_run(step.rank, Outcome::peer_failed);
        break;
      }
    }
    advance(step.rank);
  }
  /// Members are deterministic and messages keep their order, so the progress of each member determines the state.
  [[nodiscard]] std::string key() const {
    std::string key;
    for (const Member& member : members_) key += member.history + '|';
    return key;
  }
  void check() const {
    bool right = true;
    for (std::size_t rank = 0; rank < members_.size(); ++rank) right = right && members_[rank].run == runs;
    for (std::size_t run = 0; run < runs; ++run)
      for (std::size_t rank = 0; rank < members_.size(); ++rank)
        right = right && members_[rank].outcomes[run] == expected(rank, run);
    if (!right) FAIL_CHECK(describe());
  }

 private:
  struct Member {
    CallAgreement meeting;
    std::size_t run = 0;
    bool calls = false;       // is in the meeting
    bool has_called = false;  // in this run
    std::array<Outcome, runs> outcomes{};
    std::string history = {};
  };
  enum class Kind : unsigned char { go, calls, notice };
  struct Step {
    Kind kind;
    std::size_t rank;
    std::size_t from = 0;
  };
  using Pair = std::pair<std::size_t, std::size_t>;  // receiver, sender

  template <class Message>
  static Message pop(std::deque<Message>& queue) {
    const Message first = queue.front();
    queue.pop_front();
    return first;
  }

  /// Steps that wait for nothing have the same effect at any time, and are not visible to others. So they run first,
  /// and only the orders of the remaining steps are explored. Messages may still arrive late.
  [[nodiscard]] std::vector<Step> list() const {
    for (std::size_t rank = 0; rank < members_.size(); ++rank)
      if (!members_[rank].calls && members_[rank].run < runs) return {{Kind::go, rank}};
    std::vector<Step> steps;
    for (std::size_t rank = 0; rank < members_.size(); ++rank) {
      const Member& member = members_[rank];
      if (!member.calls) continue;
      if (calls_are_there(rank)) steps.push_back({Kind::calls, rank});
      for (const auto& [pair, queue] : notices_)
        if (pair.first == rank && !queue.empty()) steps.push_back({Kind::notice, rank, pair.second});
    }
    return steps;
  }

  /// True if calls of all partners have arrived. A single one changes nothing, so all are received in one step.
  [[nodiscard]] bool calls_are_there(std::size_t rank) const {
    const CallAgreement& meeting = members_[rank].meeting;
    for (std::size_t partner = 0; partner < meeting.schedule().partners(); ++partner) {
      const auto queue = calls_.find({rank, partner});
      if (!meeting.wants(partner) || queue == calls_.end()) return false;
      const bool is_there =
          std::any_of(queue->second.begin(), queue->second.end(),
                      [&](const CallAgreement::Message& message) { return message.number == meeting.awaits(); });
      if (!is_there) return false;
    }
    return true;
  }

  void go(std::size_t rank) {
    Member& member = members_[rank];
    const Action action = script_[rank][member.run];
    if (!member.has_called) {
      member.meeting.board().place().begin_run(1);
      member.meeting.board().begin_attempt();
    }
    if (action == Action::fail || member.has_called) {
      const Notice notice = member.meeting.cancel("the disk is full");
      for (std::size_t peer = 0; peer < members_.size(); ++peer)
        if (peer != rank) notices_[{peer, rank}].push_back(notice);
      end_run(rank, member.has_called ? member.outcomes[member.run] : Outcome::own_failure);
      return;
    }
    member.calls = true;
    member.meeting.begin(action == Action::call_otherwise ? other_call : one_call);
  }
  void advance(std::size_t rank) {
    Member& member = members_[rank];
    if (member.calls) {
      member.meeting.advance([&](std::size_t partner, const CallAgreement::Message& message) {
        calls_[{member.meeting.schedule().to(partner), partner}].push_back(message);
      });
      const State state = member.meeting.state();
      if (state == State::met) {
        member.outcomes[member.run] = Outcome::met;
        member.calls = false;
        member.meeting.end();
        if (script_[rank][member.run] == Action::call_then_fail)
          member.has_called = true;
        else
          end_run(rank, Outcome::met);
      } else if (state == State::different) {
        end_run(rank, Outcome::different);
      } else if (state == State::failed) {
        end_run(rank, Outcome::peer_failed);
      }
    }
    member.meeting.tell_failures([&](std::size_t partner, const CallAgreement::Message& message) {
      calls_[{member.meeting.schedule().to(partner), partner}].push_back(message);
    });
  }
  void end_run(std::size_t rank, Outcome outcome) {
    Member& member = members_[rank];
    member.outcomes[member.run++] = outcome;
    member.calls = member.has_called = false;
    member.meeting.end();
    member.meeting.board().place().end_run();
  }

  /// Either all meet in a run or none does, and a failure takes precedence over different calls.
  [[nodiscard]] Outcome expected(std::size_t rank, std::size_t run) const {
    bool fails = false;
    bool differs = false;
    for (const auto& actions : script_) {
      fails = fails || actions[run] == Action::fail;
      differs = differs || (actions[run] == Action::call_otherwise) != (script_[0][run] == Action::call_otherwise);
    }
    if (fails) return script_[rank][run] == Action::fail ? Outcome::own_failure : Outcome::peer_failed;
    return differs ? Outcome::different : Outcome::met;
  }
  [[nodiscard]] std::string describe() const {
    std::string text;
    for (std::size_t rank = 0; rank < members_.size(); ++rank) {
      text += "member " + std::to_string(rank) + " does";
      for (const Action action : script_[rank]) text += " " + std::to_string(static_cast<int>(action));
      text += " and gets";
      for (const Outcome outcome : members_[rank].outcomes) text += " " + std::to_string(static_cast<int>(outcome));
      text += " after " + members_[rank].history + "; ";
    }
    return text;
  }

  Script script_;
  std::vector<Member> members_;
  std::map<Pair, std::deque<CallAgreement::Message>> calls_;  // by receiver and its partner's number
  std::map<Pair, std::deque<Notice>> notices_;
};

/// All scripts of `members` members whose first runs use these actions, with at most `most` actions other than plain
/// calls, up to rotations of the members.
std::size_t explore_all(std::size_t members, std::size_t most, const std::vector<Action>& first,
                        const std::vector<Action>& second) {
  std::size_t explored = 0;
  std::vector<std::size_t> choice(members, 0);
  const std::size_t choices = first.size() * second.size();
  for (;;) {
    Script script;
    const bool is_first = *std::max_element(choice.begin(), choice.end()) == choice[0];
    for (const std::size_t each : choice)
      script.push_back({first[each / second.size()], second[each % second.size()], Action::call});
    std::size_t others = 0;
    for (const auto& actions : script)
      others += static_cast<std::size_t>(
          std::count_if(actions.begin(), actions.end(), [](Action action) { return action != Action::call; }));
    if (is_first && others <= most) explored += support::explore(Group{script});
    std::size_t at = 0;
    while (at < members && ++choice[at] == choices) choice[at++] = 0;
    if (at == members) return explored;
  }
}

/// Lets members meet once, with messages in order. Returns the number of messages per member.
std::vector<std::size_t> meet_once(std::vector<CallAgreement>& members, std::size_t differing) {
  struct Sent {
    std::size_t to;
    std::size_t partner;
    CallAgreement::Message message;
  };
  std::deque<Sent> on_their_way;
  std::vector<std::size_t> sent(members.size());
  const auto advance = [&](std::size_t rank) {
    members[rank].advance([&](std::size_t partner, const CallAgreement::Message& message) {
      on_their_way.push_back({members[rank].schedule().to(partner), partner, message});
      ++sent[rank];
    });
  };
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    members[rank].begin(rank == differing ? other_call : one_call);
    advance(rank);
  }
  for (; !on_their_way.empty(); on_their_way.pop_front()) {
    const Sent next = on_their_way.front();
    members[next.to].receive(next.partner, next.message);
    advance(next.to);
  }
  return sent;
}
std::vector<CallAgreement> group_of(std::size_t count) {
  std::vector<CallAgreement> members;
  for (std::size_t rank = 0; rank < count; ++rank) members.emplace_back(rank, count);
  return members;
}

}  // namespace

TEST_CASE("two members see the same results for all actions in three runs and all orders of messages") {
  const std::vector<Action> all{Action::call, Action::call_otherwise, Action::fail, Action::call_then_fail};
  const std::size_t explored = explore_all(2, 4, all, all);
  MESSAGE(explored, " states");
  CHECK(explored > 1'000);
}

TEST_CASE("three members see the same results for up to two faults in three runs and all orders of messages") {
  const std::size_t explored =
      explore_all(3, 2, {Action::call, Action::fail, Action::call_then_fail}, {Action::call, Action::fail});
  MESSAGE(explored, " states");
  CHECK(explored > 10'000);
}

TEST_CASE("three members see the same results if calls differ before or after a failure") {
  const std::size_t explored =
      explore_all(3, 2, {Action::call, Action::call_otherwise, Action::fail}, {Action::call, Action::call_otherwise});
  MESSAGE(explored, " states");
  CHECK(explored > 1'000);
}

TEST_CASE("members of a group of any size meet with at most 2 log2(P) messages each") {
  constexpr std::size_t counts[] = {1, 2, 3, 4, 5, 7, 16, 17, 63, 100, 1024};
  for (const std::size_t count : counts) {
    CAPTURE(count);
    std::vector<CallAgreement> members = group_of(count);
    for (int step = 0; step < 2; ++step) {
      const std::vector<std::size_t> sent = meet_once(members, count);
      for (std::size_t rank = 0; rank < count; ++rank) {
        CHECK(members[rank].state() == State::met);
        CHECK(static_cast<double>(sent[rank]) <= 2 * std::log2(count));
        members[rank].end();
      }
    }
  }
}

TEST_CASE("in a group of any size every member finds the different call, and all can continue") {
  constexpr std::size_t counts[] = {2, 3, 5, 17, 100};
  for (const std::size_t count : counts) {
    CAPTURE(count);
    std::vector<CallAgreement> members = group_of(count);
    for (std::size_t differing = 0; differing < count; differing += 1 + count / 7) {
      meet_once(members, differing);
      for (std::size_t rank = 0; rank < count; ++rank) {
        REQUIRE(members[rank].state() == State::different);
        const std::size_t found = members[rank].different_call().rank;
        CHECK(found == (rank == differing ? (differing == 0 ? 1 : 0) : differing));
        members[rank].end();
      }
    }
    meet_once(members, count);
    for (CallAgreement& member : members) CHECK(member.state() == State::met);
  }
}

TEST_CASE("missing members are named in a small group, and narrowed down in a large one") {
  constexpr std::size_t count = 20;
  std::vector<CallAgreement> members = group_of(count);
  std::vector<std::deque<std::pair<std::size_t, CallAgreement::Message>>> inboxes(count);
  const auto advance = [&](std::size_t rank) {
    members[rank].advance([&](std::size_t partner, const CallAgreement::Message& message) {
      inboxes[members[rank].schedule().to(partner)].push_back({partner, message});
    });
  };
  constexpr std::size_t late = 7;
  for (std::size_t rank = 0; rank < count; ++rank) {
    if (rank == late) continue;
    members[rank].begin(one_call);
    advance(rank);
  }
  for (bool more = true; more;) {
    more = false;
    for (std::size_t rank = 0; rank < count; ++rank) {
      if (rank == late) continue;
      for (; !inboxes[rank].empty(); inboxes[rank].pop_front()) {
        more = true;
        members[rank].receive(inboxes[rank].front().first, inboxes[rank].front().second);
        advance(rank);
      }
    }
  }
  for (std::size_t rank = 0; rank < count; ++rank) {
    if (rank == late) continue;
    CAPTURE(rank);
    CHECK(members[rank].is_waiting());
    std::vector<std::size_t> missing;
    members[rank].for_each_missing([&](std::size_t peer) { missing.push_back(peer); });
    CHECK(std::find(missing.begin(), missing.end(), late) != missing.end());
    if (rank > late && rank <= late + 3) CHECK(missing == std::vector<std::size_t>{late});
    CHECK(members[rank].hears_indirectly() == (missing.size() > 1));
  }
}
