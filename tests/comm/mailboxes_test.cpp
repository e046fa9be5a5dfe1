#include <dist/comm/mailboxes.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <support/sanitizers.hpp>
#include <support/stepped_memory.hpp>

namespace {

using support::SteppedMembers;

/// A member's input to a collective.
enum class Action : unsigned char { call, call_otherwise, fail };
enum class Outcome : unsigned char { none, met, different, failed };

/// Each member's input to each collective.
using Script = std::vector<std::vector<Action>>;

/// Parts of the protocol; a test leaves out each one and must detect the error.
struct Rules {
  std::memory_order order = std::memory_order_seq_cst;
  bool look_twice = true;
  bool look_when_giving_up = true;
  bool one_gives_up_at_a_time = true;
  bool wait_before_next = true;
};

struct Box {
  support::SteppedAtomic sequence;
  support::SteppedValue<std::uint64_t> fingerprint;
  support::SteppedValue<std::size_t> content;
};
struct Arrivals {
  template <class Awaited>
  void notify(Awaited&&) {}
  void notify() {}
  template <class Awaited>
  void wait(Awaited&&, std::int64_t) {
    members->pause_until_a_change();
  }

  SteppedMembers* members;
};
/// Mailboxes in memory whose operations are steps: a Medium.
template <bool may_take_back>
struct Memory {
  static constexpr bool takes_back = may_take_back;

  std::vector<std::array<Box, 2>>* boxes;
  Arrivals* calls;

  [[nodiscard]] std::size_t size() const noexcept { return boxes->size(); }
  [[nodiscard]] Box& mailbox(std::size_t rank, std::uint32_t parity) const { return (*boxes)[rank][parity]; }
  [[nodiscard]] Arrivals& arrivals() const { return *calls; }
};

template <bool look_twice>
class Group {
 public:
  using Mailboxes = dist::detail::Mailboxes<Memory<look_twice>>;

  Group(SteppedMembers& members, const Script& script, std::size_t giving_up, const Rules& rules)
      : members_(members), script_(script), giving_up_(giving_up), rules_(rules), lock_(members), arrivals_{&members} {
    for (std::size_t rank = 0; rank < script.size(); ++rank) {
      const Box box{{members, rules.order},
                    support::SteppedValue<std::uint64_t>{members},
                    support::SteppedValue<std::size_t>{members}};
      memory_.push_back({box, box});
      outcomes_.emplace_back(script[rank].size());
    }
  }

  void run(std::size_t rank) {
    bool left_early = false;
    bool may_give_up = rank < giving_up_;
    for (std::uint32_t number = 1; number <= script_[rank].size(); ++number) {
      if (left_early && rules_.wait_before_next) await_all(rank, number - 1);
      left_early = false;
      Outcome& outcome = outcomes_[rank][number - 1];
      outcome = take_part(rank, number, script_[rank][number - 1], may_give_up, left_early);
      if (outcome != Outcome::met) continue;
      for (std::size_t peer = 0; peer < script_.size(); ++peer)
        if (boxes_.of(peer, number).content != 10 * number + peer) members_.mistake("a member reads what is not there");
    }
  }
  /// Checks that all members see the same, correct result in each collective.
  [[nodiscard]] std::string find_mistake() const {
    for (std::size_t i = 0; i < outcomes_[0].size(); ++i) {
      bool fails = false;
      bool differs = false;
      for (std::size_t rank = 0; rank < script_.size(); ++rank) {
        if (outcomes_[rank][i] != outcomes_[0][i]) return "members see different outcomes";
        fails = fails || script_[rank][i] == Action::fail;
        differs = differs || (script_[rank][i] == Action::call_otherwise) != (script_[0][i] == Action::call_otherwise);
      }
      const Outcome expected = fails ? Outcome::failed : differs ? Outcome::different : Outcome::met;
      if (outcomes_[0][i] != expected && (giving_up_ == 0 || outcomes_[0][i] != Outcome::failed))
        return "all see the wrong outcome";
    }
    return {};
  }

 private:
  struct GaveUp {};

  Outcome take_part(std::size_t rank, std::uint32_t number, Action action, bool& may_give_up, bool& left_early) {
    Box& mine = boxes_.of(rank, number);
    if (action == Action::fail) {
      mine.fingerprint = Mailboxes::failure;
      boxes_.announce_failure(rank, number);
      left_early = true;
      return Outcome::failed;
    }
    const std::uint64_t fingerprint = action == Action::call ? 1 : 2;
    mine.fingerprint = fingerprint;
    mine.content = 10 * number + rank;
    boxes_.announce(rank, number);
    try {
      const auto slowly = [&](std::size_t peer, const dist::detail::MailboxWait&) {
        boxes_.await_slowly(rank, peer, number, [&] {
          if (!may_give_up || members_.choose(2) == 0) return;
          may_give_up = false;
          fail(rank, number);
        });
      };
      const bool same = boxes_.meet(rank, number, fingerprint, 0, 0, slowly, [](std::size_t) {});
      if (same) return Outcome::met;
    } catch (const GaveUp&) {
      left_early = true;
      return Outcome::failed;
    }
    bool failed = false;
    for (std::size_t peer = 0; peer < script_.size(); ++peer)
      failed = failed || boxes_.of(peer, number).fingerprint == Mailboxes::failure;
    return failed ? Outcome::failed : Outcome::different;
  }
  void fail(std::size_t rank, std::uint32_t number) {
    if (rules_.one_gives_up_at_a_time) lock_.lock();
    const auto fail = [&] { boxes_.of(rank, number).fingerprint = Mailboxes::failure; };
    bool gave_up = true;
    if (rules_.look_when_giving_up) {
      gave_up = boxes_.fail_unless_all_came(rank, number, fail);
    } else {
      boxes_.of(rank, number).sequence.store(number - 2);
      fail();
      boxes_.announce_failure(rank, number);
    }
    if (rules_.one_gives_up_at_a_time) lock_.unlock();
    if (gave_up) throw GaveUp{};
  }
  void await_all(std::size_t rank, std::uint32_t number) {
    for (std::size_t peer = 0; peer < script_.size(); ++peer)
      if (peer != rank) boxes_.await_slowly(rank, peer, number, [] {});
  }

  SteppedMembers& members_;
  const Script& script_;
  std::size_t giving_up_;  // number of members that may give up, once each
  Rules rules_;
  support::SteppedLock lock_;
  Arrivals arrivals_;
  std::vector<std::array<Box, 2>> memory_;
  Mailboxes boxes_{{&memory_, &arrivals_}, {.spins = 0, .yields = 0}};
  std::vector<std::vector<Outcome>> outcomes_;
};

template <bool look_twice>
SteppedMembers::Explored explore_group(const Script& script, std::size_t giving_up, const Rules& rules) {
  return SteppedMembers::explore(script.size(), [&](SteppedMembers& members) {
    const auto group = std::make_shared<Group<look_twice>>(members, script, giving_up, rules);
    return SteppedMembers::Run{[group](std::size_t rank) { group->run(rank); },
                               [group] { return group->find_mistake(); }};
  });
}
SteppedMembers::Explored explore(const Script& script, std::size_t giving_up, const Rules& rules = {}) {
  return rules.look_twice ? explore_group<true>(script, giving_up, rules)
                          : explore_group<false>(script, giving_up, rules);
}

/// All scripts with these actions, up to rotations of the members.
std::vector<Script> all_scripts(std::size_t members, std::size_t collectives, const std::vector<Action>& actions) {
  std::vector<Script> scripts;
  std::vector<std::size_t> choice(members * collectives, 0);
  for (;;) {
    Script script(members);
    for (std::size_t i = 0; i < choice.size(); ++i) script[i / collectives].push_back(actions[choice[i]]);
    if (*std::max_element(script.begin(), script.end()) == script[0]) scripts.push_back(script);
    std::size_t at = 0;
    while (at < choice.size() && ++choice[at] == actions.size()) choice[at++] = 0;
    if (at == choice.size()) return scripts;
  }
}

#ifdef DIST_TEST_SANITIZER
constexpr std::size_t collectives = 1;  // a fiber takes a millisecond to create with the thread sanitizer
#else
constexpr std::size_t collectives = 3;
#endif

const std::vector<Action> all_actions{Action::call, Action::call_otherwise, Action::fail};

/// The script of `members` members that all make the same calls.
Script calls(std::size_t members, std::size_t count) {
  return Script(members, std::vector<Action>(std::min(count, collectives), Action::call));
}
void check_all(const std::vector<Script>& scripts, std::size_t giving_up = 0, const Rules& rules = {}) {
  std::size_t states = 0;
  for (const Script& script : scripts) {
    const SteppedMembers::Explored explored = explore(script, giving_up, rules);
    CHECK(explored.mistake == "");
    states += explored.states;
  }
  MESSAGE(states, " states");
  CHECK(states > 20 * collectives);
}

}  // namespace

TEST_CASE("two members agree on three collectives with any inputs and in any order of steps") {
  for (const bool look_twice : {false, true})  // one look is enough if members never give up
    check_all(all_scripts(2, collectives, all_actions), 0, {.look_twice = look_twice});
}

TEST_CASE("three members agree on a collective with any inputs and in any order of steps") {
  std::vector<Script> scripts = all_scripts(3, 1, all_actions);
  if (collectives > 1)
    for (Script& script : scripts)
      for (std::vector<Action>& actions : script) actions.push_back(Action::call);
  for (const bool look_twice : {false, true}) check_all(scripts, 0, {.look_twice = look_twice});
}

TEST_CASE("if members may give up at any time, all continue or none does, and later collectives match again") {
  check_all({calls(2, 3)}, 2);
  check_all({calls(3, 2)}, 1);
  if (collectives > 1) check_all({calls(3, 1)}, 2);
}

TEST_CASE("without any part of the protocol, some order of steps fails") {
  const auto finds_mistake = [](const Script& script, std::size_t giving_up, const Rules& rules) {
    return explore(script, giving_up, rules).mistake != "";
  };
  CHECK(explore(calls(2, 1), 0, {.order = std::memory_order_relaxed}).mistake == "a value is read before it is there");
  CHECK(finds_mistake(calls(3, 1), 1, {.order = std::memory_order_release}));
  CHECK(finds_mistake(calls(3, 1), 1, {.look_twice = false}));
  CHECK(finds_mistake(calls(3, 1), 1, {.look_when_giving_up = false}));
  CHECK(finds_mistake(calls(3, 1), 2, {.one_gives_up_at_a_time = false}));
  const Script fails_twice{{Action::fail, Action::fail, Action::call}, {Action::call, Action::call, Action::call}};
  CHECK(finds_mistake(fails_twice, 0, {.wait_before_next = false}));
}
