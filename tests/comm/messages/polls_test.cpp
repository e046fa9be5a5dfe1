#include <dist/comm/messages/polls.hpp>
// optimised

#include <doctest/doctest.h>

#include <support/interleavings.hpp>
#include <support/sanitizers.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

using dist::detail::Dissemination;

namespace {

std::vector<Dissemination> schedules(std::size_t members, std::size_t radix) {
  std::vector<Dissemination> all;
  for (std::size_t rank = 0; rank < members; ++rank) all.emplace_back(rank, members, radix);
  return all;
}

}  // namespace

TEST_CASE("after the last round every member has the information of all") {
  for (std::size_t number = 2; number < 2 * 71; ++number) {
    const std::size_t members = number / 2;
    const std::size_t radix = number % 2 == 0 ? 2 : 4;
    CAPTURE(members);
    CAPTURE(radix);
    const std::vector<Dissemination> all = schedules(members, radix);
    std::vector<std::set<std::size_t>> known(members);
    for (std::size_t rank = 0; rank < members; ++rank) known[rank] = {rank};
    for (std::size_t round = 0; round < all[0].rounds(); ++round) {
      const std::vector<std::set<std::size_t>> before = known;
      for (std::size_t rank = 0; rank < members; ++rank)
        for (std::size_t i = all[rank].begin(round); i < all[rank].end(round); ++i) {
          const std::size_t from = all[rank].from(i);
          CHECK(all[from].to(i) == rank);
          known[rank].insert(before[from].begin(), before[from].end());
          for (std::size_t below = 0; below < all[rank].speaks_for(i); ++below)
            CHECK(before[from].count((from + members - below) % members) == 1);
        }
    }
    for (const std::set<std::size_t>& each : known) CHECK(each.size() == members);
  }
}

TEST_CASE("all partners are different members") {
  for (std::size_t members = 1; members <= 300; ++members) {
    const Dissemination schedule{members / 3, members};
    std::set<std::size_t> to;
    std::set<std::size_t> from;
    for (std::size_t i = 0; i < schedule.partners(); ++i) {
      to.insert(schedule.to(i));
      from.insert(schedule.from(i));
    }
    CHECK(to.size() == schedule.partners());
    CHECK(from.size() == schedule.partners());
    CHECK(to.count(members / 3) + from.count(members / 3) == 0);
  }
}

TEST_CASE("a member sends at most 2 log2(P) messages, and one to each other in groups of up to four") {
  for (std::size_t members = 1; members <= 5000; ++members) {
    CAPTURE(members);
    const std::size_t sent = Dissemination{0, members}.partners();
    CHECK(static_cast<double>(sent) <= 2 * std::log2(members));
    if (members <= 4) CHECK(sent == members - 1);
  }
  CHECK(Dissemination{0, 4}.rounds() == 1);
  CHECK(Dissemination{0, 1024}.rounds() == 5);
  CHECK(Dissemination{0, 1024}.partners() == 15);
}

namespace {

using dist::detail::Polls;
using Kind = Polls::Kind;

/// One action of all members, in the same order. Failed members continue after the next `recover`.
struct Act {
  enum class What : unsigned char { begin, end, ask, meet, recover };
  What what;
  std::size_t pass = 0;  // number of the pass
};
using What = Act::What;
using Program = std::vector<Act>;

/// A member's differences: the questions for which the condition holds, one bit each, and the action at which it fails.
struct Part {
  unsigned holds = 0;
  std::size_t fails_at = ~std::size_t{0};
};

/// Members that run a program, and the messages between them. Messages between two members keep their order; otherwise
/// the order of arrival is arbitrary. The state is copied at every explored step, so it refers to the program and its
/// parts, which outlive it, and has its channels in one array. A member takes messages only while it waits for an
/// answer: in `meet` members wait for each other, as in shared memory.
class Group {
 public:
  Group(const Program& program, const std::vector<Part>& parts, std::size_t radix)
      : program_(&program), parts_(&parts), channels_(parts.size() * parts.size()) {
    for (std::size_t rank = 0; rank < parts.size(); ++rank)
      members_.push_back({Polls{rank, Dissemination{rank, parts.size(), radix}}});
    for (Member& member : members_) member.answers.resize(questions(program));
    run_all();
  }

  [[nodiscard]] std::size_t steps() const { return list().size(); }
  void take(std::size_t number) {
    const std::size_t at = list()[number];
    Channel& channel = channels_[at];
    members_[at / members_.size()].polls.hear(channel.queue.front());
    channel.queue.erase(channel.queue.begin());
    run_all();
  }
  /// Members are deterministic, independent of the order of the same messages: the sent and received messages determine
  /// the state.
  [[nodiscard]] std::string key() const {
    std::string key;
    for (const Member& member : members_) key += static_cast<char>('0' + 2 * member.at + (member.asked ? 1 : 0));
    for (const Channel& channel : channels_) key += channel.sent + static_cast<char>('0' + channel.queue.size()) + '|';
    return key;
  }
  void check() const {
    bool right = true;
    for (std::size_t rank = 0; rank < members_.size(); ++rank) {
      const Member& member = members_[rank];
      right = right && !member.goes_wrong && member.at == program_->size();
      std::size_t question = 0;
      for (std::size_t act = 0; act < program_->size(); ++act) {
        if ((*program_)[act].what != What::ask) continue;
        if (const std::optional<bool> answer = member.answers[question])
          right = right && *answer == holds_on_any(question, act) && (*answer || all_come_to(act));
        else
          right = right && !all_come_to(act) && (member.stopped_by || act >= (*parts_)[rank].fails_at);
        ++question;
      }
      if (member.stopped_by) right = right && (*parts_)[*member.stopped_by].fails_at < program_->size();
    }
    if (!right) FAIL_CHECK(describe());
  }
  [[nodiscard]] static std::size_t questions(const Program& program) {
    return static_cast<std::size_t>(
        std::count_if(program.begin(), program.end(), [](const Act& act) { return act.what == What::ask; }));
  }

 private:
  struct Member {
    Polls polls;
    std::size_t at = 0;  // position in the program
    bool asked = false;
    std::vector<std::uint64_t> passes{};
    std::size_t question = 0;                    // number of questions reached, in all passes
    std::vector<std::optional<bool>> answers{};  // by question
    std::optional<std::size_t> stopped_by{};
    bool goes_wrong = false;
  };
  struct Channel {
    std::vector<Polls::Message> queue{};
    std::string sent{};
  };

  /// The channels from which a member may take a message.
  [[nodiscard]] std::vector<std::size_t> list() const {
    std::vector<std::size_t> steps;
    for (std::size_t at = 0; at < channels_.size(); ++at) {
      const Member& member = members_[at / members_.size()];
      const bool waits = member.at < program_->size() && (*program_)[member.at].what == What::ask;
      if (waits && !channels_[at].queue.empty()) steps.push_back(at);
    }
    return steps;
  }

  /// Steps that wait for nothing have the same effect at any time, and are not visible to others.
  void run_all() {
    for (bool more = true; more;) {
      more = false;
      for (std::size_t rank = 0; rank < members_.size(); ++rank) more = run(rank) || more;
    }
  }
  /// Runs one member until it must wait. Returns true if it made progress.
  bool run(std::size_t rank) {
    Member& member = members_[rank];
    const std::size_t before = member.at;
    while (member.at < program_->size()) {
      if (member.at == (*parts_)[rank].fails_at) {
        fail(rank);
        continue;
      }
      const Act act = (*program_)[member.at];
      if (act.what == What::begin) member.passes.push_back(member.polls.begin());
      if (act.what == What::end) member.polls.end(member.passes[act.pass]);
      if (act.what == What::meet && !all_are_at(member.at)) break;
      if (act.what == What::ask && !ask(rank, member.passes[act.pass])) {
        if (member.polls.find_stop(member.passes[act.pass]) == nullptr) break;
        fail(rank);
        continue;
      }
      ++member.at;
    }
    return member.at != before;
  }
  /// Returns true if the answer has arrived.
  bool ask(std::size_t rank, std::uint64_t pass) {
    Member& member = members_[rank];
    const auto send = [&](std::size_t partner, const Polls::Message& message) {
      post(rank, member.polls.schedule().to(partner), message);
    };
    member.polls.advance(pass, send);
    if (!member.asked) {
      if (!member.polls.is_settled(pass)) return false;
      const bool holds = ((*parts_)[rank].holds >> member.question & 1U) != 0;
      member.polls.ask(pass, holds, send);
      member.asked = true;
      // A member with the answer does not wait.
      member.goes_wrong = member.goes_wrong || (holds && !member.polls.knows_answer(pass));
    }
    if (!member.polls.knows_answer(pass)) return false;
    member.answers[member.question++] = member.polls.answer(pass);
    member.asked = false;
    return true;
  }
  /// Reports the failure to the others, unless another member does, and continues after the next `recover`.
  void fail(std::size_t rank) {
    Member& member = members_[rank];
    const std::uint64_t pass = member.passes.back();
    if (const Polls::Message* const stop = member.polls.find_stop(pass)) member.stopped_by = stop->who;
    if (const auto message = member.polls.fail(pass, "out of luck"))
      for (std::size_t peer = 0; peer < members_.size(); ++peer)
        if (peer != rank) post(rank, peer, *message);
    member.polls.end(pass);
    member.asked = false;
    while ((*program_)[member.at].what != What::recover)
      if ((*program_)[member.at++].what == What::ask) ++member.question;
  }
  void post(std::size_t from, std::size_t to, const Polls::Message& message) {
    Channel& channel = channels_[to * members_.size() + from];
    channel.queue.push_back(message);
    channel.sent += std::to_string(message.pass) + std::to_string(message.question);
    channel.sent += static_cast<char>('a' + static_cast<int>(message.kind));
  }
  [[nodiscard]] bool all_are_at(std::size_t act) const {
    return std::all_of(members_.begin(), members_.end(), [&](const Member& member) { return member.at >= act; });
  }

  [[nodiscard]] bool comes_to(std::size_t rank, std::size_t act) const {
    const auto recovers =
        std::find_if(program_->begin(), program_->end(), [](const Act& each) { return each.what == What::recover; });
    return act < (*parts_)[rank].fails_at || act > static_cast<std::size_t>(recovers - program_->begin());
  }
  [[nodiscard]] bool all_come_to(std::size_t act) const {
    for (std::size_t rank = 0; rank < parts_->size(); ++rank)
      if (!comes_to(rank, act)) return false;
    return true;
  }
  [[nodiscard]] bool holds_on_any(std::size_t question, std::size_t act) const {
    for (std::size_t rank = 0; rank < parts_->size(); ++rank)
      if (((*parts_)[rank].holds >> question & 1U) != 0 && comes_to(rank, act)) return true;
    return false;
  }
  [[nodiscard]] std::string describe() const {
    std::string text;
    for (std::size_t rank = 0; rank < members_.size(); ++rank) {
      const Member& member = members_[rank];
      text += "member " + std::to_string(rank) + " holds " + std::to_string((*parts_)[rank].holds) + ", is at " +
              std::to_string(member.at) + (member.goes_wrong ? ", waited in vain" : "") + " and got";
      for (const std::optional<bool> answer : member.answers) text += !answer ? " none" : *answer ? " yes" : " no";
      if (member.stopped_by) text += ", stopped by " + std::to_string(*member.stopped_by);
      text += "; ";
    }
    for (std::size_t at = 0; at < channels_.size(); ++at)
      text += std::to_string(at % members_.size()) + " to " + std::to_string(at / members_.size()) + ": " +
              channels_[at].sent + "; ";
    return text;
  }

  const Program* program_;
  const std::vector<Part>* parts_;
  std::vector<Member> members_;
  std::vector<Channel> channels_;  // by receiver, then by sender
};

/// With a sanitizer, the condition holds on one member at a time, which is a twentieth of the states.
#ifdef DIST_TEST_SANITIZER
constexpr int most_holding = 1;
constexpr std::size_t few = 100, many = 500;
#else
constexpr int most_holding = 6;
constexpr std::size_t few = 500, many = 10'000;
#endif

/// Explores the program for all answers that hold at most `most` times in total, up to rotations of the members.
/// `fails_at`, if given, is the action at which member 0 fails.
std::size_t explore_all(const Program& program, std::size_t members, std::size_t radix, int most,
                        std::optional<std::size_t> fails_at = std::nullopt) {
  const unsigned choices = 1U << Group::questions(program);
  std::size_t explored = 0;
  std::vector<Part> parts(members);
  if (fails_at) parts[0].fails_at = *fails_at;
  for (;;) {
    bool is_first = true;
    int holding = 0;
    for (const Part& part : parts) {
      is_first = is_first && (fails_at || part.holds <= parts[0].holds);
      holding += std::popcount(part.holds);
    }
    if (is_first && holding <= std::min(most, most_holding)) explored += support::explore(Group{program, parts, radix});
    std::size_t at = 0;
    while (at < members && ++parts[at].holds == choices) parts[at++].holds = 0;
    if (at == members) return explored;
  }
}

const Program three_questions{{What::begin}, {What::ask}, {What::ask}, {What::ask}, {What::end}};
/// Members meet between the questions, and take no messages until all have their answers.
const Program meeting_between{{What::begin}, {What::ask}, {What::meet}, {What::ask}, {What::meet}, {What::end}};
const Program pass_after_pass{{What::begin},  {What::ask},    {What::end},   {What::begin},
                              {What::ask, 1}, {What::end, 1}, {What::begin}, {What::ask, 2}};
const Program pass_in_pass{{What::begin},  {What::ask}, {What::begin}, {What::ask, 1},
                           {What::end, 1}, {What::ask}, {What::end}};
const Program with_recovery{{What::begin},   {What::ask},   {What::ask},   {What::end},
                            {What::recover}, {What::begin}, {What::ask, 1}};

std::size_t explore_programs(std::size_t members, std::size_t radix, int most) {
  std::size_t explored = 0;
  for (const Program* const program : {&three_questions, &meeting_between, &pass_after_pass, &pass_in_pass})
    explored += explore_all(*program, members, radix, most);
  return explored;
}

/// Asks questions in a group of any size with ordered messages; the condition holds on the members with `holds(rank)`.
class Line {
 public:
  explicit Line(std::size_t count) : sent_(count) {
    for (std::size_t rank = 0; rank < count; ++rank) pass_ = members_.emplace_back(rank, count).begin();
  }

  template <class Holds>
  void ask(Holds&& holds) {
    const auto sender = [this](std::size_t rank) {
      return [this, rank](std::size_t partner, const Polls::Message& message) {
        on_their_way_.emplace_back(members_[rank].schedule().to(partner), message);
        ++sent_[rank];
      };
    };
    for (std::size_t rank = 0; rank < members_.size(); ++rank) members_[rank].ask(pass_, holds(rank), sender(rank));
    for (; !on_their_way_.empty(); on_their_way_.pop_front()) {
      Polls& to = members_[on_their_way_.front().first];
      to.hear(on_their_way_.front().second);
      to.advance(pass_, sender(on_their_way_.front().first));
    }
  }
  [[nodiscard]] std::size_t count_answers(bool answer) const {
    return static_cast<std::size_t>(std::count_if(members_.begin(), members_.end(), [&](const Polls& member) {
      return member.knows_answer(pass_) && member.is_settled(pass_) && member.answer(pass_) == answer;
    }));
  }
  [[nodiscard]] std::size_t most_sent() const { return *std::max_element(sent_.begin(), sent_.end()); }

 private:
  std::vector<Polls> members_;
  std::uint64_t pass_ = 0;
  std::vector<std::size_t> sent_;
  std::deque<std::pair<std::size_t, Polls::Message>> on_their_way_;
};

}  // namespace

TEST_CASE("two members get the right answers for all conditions and all orders of messages") {
  const std::size_t explored = explore_programs(2, 4, 6);
  MESSAGE(explored, " states");
  CHECK(explored > few);
}

TEST_CASE("three members get the right answers, with direct and forwarded messages") {
  const std::size_t explored = explore_programs(3, 4, 2) + explore_programs(3, 2, 4);
  MESSAGE(explored, " states");
  CHECK(explored > many);
}

TEST_CASE("four members get the right answers with forwarded messages") {
  const std::size_t explored = explore_all(meeting_between, 4, 2, 4);
  MESSAGE(explored, " states");
  CHECK(explored > many);
}

TEST_CASE("if a member fails at any time, the others get right answers or its failure, and all continue") {
  std::size_t explored = 0;
  for (std::size_t fails_at = 1; fails_at < 4; ++fails_at)
    for (const std::size_t radix : {2U, 4U}) {
      explored += explore_all(with_recovery, 2, radix, 3, fails_at);
      explored += explore_all(with_recovery, 3, radix, 3, fails_at);
    }
  MESSAGE(explored, " states");
  CHECK(explored > many);
}

TEST_CASE("members of a group of any size get the answer with at most 2 log2(P) messages each") {
  constexpr std::size_t counts[] = {1, 2, 3, 4, 5, 7, 16, 17, 63, 100, 1024};
  for (const std::size_t count : counts) {
    CAPTURE(count);
    Line line{count};
    line.ask([](std::size_t) { return false; });
    CHECK(line.count_answers(false) == count);
    line.ask([](std::size_t) { return true; });
    CHECK(line.count_answers(true) == count);
    std::size_t asked = 2;
    for (std::size_t holding = 0; holding < count; holding += 1 + count / 5, ++asked) {
      line.ask([&](std::size_t rank) { return rank == holding; });
      CHECK(line.count_answers(true) == count);
    }
    line.ask([](std::size_t) { return false; });
    CHECK(line.count_answers(false) == count);
    CHECK(static_cast<double>(line.most_sent()) <= 2 * std::log2(count) * static_cast<double>(asked + 1));
  }
}

TEST_CASE("a member on which the condition holds has the answer at once, and still awaits its partners' messages") {
  Polls polls{3, 20};
  const std::uint64_t pass = polls.begin();
  std::size_t sent = 0;
  polls.ask(pass, true, [&](std::size_t, const Polls::Message& message) {
    CHECK(message.kind == Kind::yes);
    ++sent;
  });
  CHECK(sent == polls.schedule().partners());
  CHECK(polls.knows_answer(pass));
  CHECK(polls.answer(pass));
  CHECK_FALSE(polls.is_settled(pass));
  std::size_t awaited = 0;
  polls.for_each_awaited(pass, [&](std::size_t, std::size_t) { ++awaited; });
  CHECK(awaited == polls.schedule().partners());
}

TEST_CASE("the first end of a pass counts, long texts are truncated, and no member repeats a report") {
  Polls polls{0, 2};
  const std::uint64_t pass = polls.begin();
  const auto ignore = [](std::size_t, const Polls::Message&) {};
  const std::optional<Polls::Message> own = polls.fail(pass, std::string(5'000, 'x'));
  REQUIRE(own.has_value());
  CHECK(own->question == 1);
  CHECK(std::string{own->why.data()} == std::string(1'022, 'x'));
  CHECK(own->bytes() <= sizeof(Polls::Message));
  polls.ask(pass, true, ignore);
  Polls::Message theirs = *own;
  theirs.who = 1;
  theirs.question = 2;
  polls.hear(theirs);
  CHECK(polls.find_stop(pass) == nullptr);  // the other member has reached the first question
  CHECK(polls.stop(pass, Kind::left, 1).question == 1);
  REQUIRE(polls.find_stop(pass) != nullptr);
  CHECK(polls.find_stop(pass)->kind == Kind::left);
  CHECK_FALSE(polls.fail(pass, "for another reason").has_value());
}
