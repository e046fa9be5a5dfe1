#include <dist/comm/notice_board.hpp>

#include <cstddef>
#include <optional>
#include <string>

#include <doctest/doctest.h>
#include <support/what_throws.hpp>

using dist::FailureNotice;
using dist::detail::Notice;
using dist::detail::NoticeBoard;
using dist::detail::NoticeFrom;

namespace {

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

std::string said(const std::optional<NoticeFrom>& failure) {
  if (!failure) return "nothing";
  return support::what_throws([&] { failure->notice.failure.raise(failure->peer, "east"); });
}
/// Member 1 fails instead of entering its next collective.
Notice failure_of_peer(NoticeBoard& peer, const FailureNotice& failure = "the disk is full") {
  return peer.cancel(failure);
}
void meet(NoticeBoard& board) {
  board.begin_meeting();
  CHECK_FALSE(board.enter());
  board.succeed();
  board.end_meeting();
}

}  // namespace

TEST_CASE("a failure in the current collective is thrown at once, a failure in a later one when it is entered") {
  NoticeBoard mine{0, 2};
  NoticeBoard peer{1, 2};
  mine.begin_meeting();
  CHECK_FALSE(mine.enter());
  CHECK_FALSE(peer.enter());
  const Notice later = failure_of_peer(peer);
  CHECK(later.sequence == 2);
  CHECK_FALSE(mine.hear({later, 1}));
  mine.succeed();
  mine.end_meeting();
  CHECK_FALSE(mine.all_know());
  CHECK(has(said(mine.enter()), "the disk is full"));
  CHECK(mine.all_know());
  CHECK(mine.sequence() == 2);
  mine.begin_attempt();
  CHECK_FALSE(mine.all_know());

  const Notice next = failure_of_peer(peer, "the network is down");
  mine.begin_meeting();
  CHECK_FALSE(mine.enter());
  CHECK(has(said(mine.hear({next, 1})), "the network is down"));
  CHECK(mine.sequence() == 3);
}

TEST_CASE("a failure in a run that this member has left skips the collective") {
  NoticeBoard mine{0, 2};
  NoticeBoard peer{1, 2};
  for (NoticeBoard* board : {&mine, &peer}) board->place().begin_run(7);
  const Notice old = failure_of_peer(peer);
  mine.place().end_run();
  mine.place().begin_run(7);
  mine.begin_meeting();
  CHECK_FALSE(mine.enter());
  CHECK_FALSE(mine.hear({old, 1}));
  CHECK(mine.skips());
  CHECK(mine.skipped_of(1) != nullptr);
  CHECK(mine.skipped_of(0) == nullptr);
  CHECK_FALSE(mine.enter());
  CHECK_FALSE(mine.skips());
  // The later end of the peer is less precise.
  CHECK(has(said(mine.hear({peer.cancel(FailureNotice{"it ended"}.for_good()), 1})), "the disk is full"));
}

TEST_CASE("a failed member's run is closed for all its collectives, for any order of notices") {
  for (const bool peer_is_first : {true, false}) {
    CAPTURE(peer_is_first);
    NoticeBoard mine{0, 3};
    NoticeBoard peer{1, 3};
    for (NoticeBoard* board : {&mine, &peer}) {
      board->place().begin_run(7);
      meet(*board);
    }
    // This member fails after the collective; the peer fails instead of it, in the next run.
    peer.place().end_run();
    peer.place().begin_run(7);
    const Notice notice = failure_of_peer(peer);
    if (peer_is_first) CHECK_FALSE(mine.hear({notice, 1}));
    static_cast<void>(mine.cancel("no log"));
    if (!peer_is_first) CHECK_FALSE(mine.hear({notice, 1}));
    CHECK(mine.knows({.peer = 1, .sequence = 2}));
    CHECK_FALSE(mine.knows({.peer = 2, .sequence = 1}));
    mine.place().end_run();
    CHECK_FALSE(mine.find_closed());
    mine.begin_attempt();
    mine.place().begin_run(7);
    CHECK(has(said(mine.find_closed()), "the disk is full"));
    CHECK(mine.all_know());
    mine.place().end_run();
    mine.place().begin_run(7);
    CHECK_FALSE(mine.find_closed());
  }
}

TEST_CASE("failed collectives are settled in order before the next one, and a success ends the series") {
  NoticeBoard mine{0, 2};
  NoticeBoard peer{1, 2};
  meet(mine);
  meet(peer);
  CHECK(mine.unsettled() == 0);
  static_cast<void>(mine.cancel("no log"));
  static_cast<void>(mine.cancel("no disk"));
  CHECK(mine.unsettled() == 2);
  mine.settle();
  CHECK(mine.unsettled() == 3);
  mine.settle();
  CHECK(mine.unsettled() == 0);
  // The peer fails in the next run, which closes more.
  peer.place().begin_run(7);
  CHECK_FALSE(mine.hear({failure_of_peer(peer), 1}));
  CHECK(mine.furthest().peer == 1);
  CHECK(mine.furthest().sequence == 2);
  CHECK(mine.furthest().distance == 1);
  mine.begin_meeting();
  CHECK_FALSE(mine.enter());
  mine.differ();
  CHECK(mine.unsettled() == 0);
  CHECK_FALSE(mine.enter());
  mine.succeed();
  CHECK(mine.furthest().sequence == 0);
}

TEST_CASE("a failure that breaks the group is thrown in every state") {
  NoticeBoard mine{0, 2};
  NoticeBoard peer{1, 2};
  meet(mine);
  const Notice notice = peer.fail(dist::DeadlineExceeded("too long", "nobody came", "wait longer"));
  CHECK(has(said(mine.hear({notice, 1})), "nobody came"));
}

TEST_CASE("collectives without comparison are counted, and failures prevent them, too") {
  NoticeBoard mine{0, 2};
  NoticeBoard peer{1, 2};
  CHECK_FALSE(mine.count());
  CHECK_FALSE(peer.count());
  CHECK_FALSE(mine.hear({failure_of_peer(peer), 1}));
  CHECK_FALSE(mine.find_abandoned(3));
  CHECK(has(said(mine.count()), "the disk is full"));
  CHECK(mine.all_know());
}

TEST_CASE("members know their own failures and the reported ones") {
  NoticeBoard mine{0, 3};
  NoticeBoard peer{1, 3};
  const Notice notice = failure_of_peer(peer);
  CHECK_FALSE(mine.knows(peer.furthest()));
  CHECK(peer.knows(peer.furthest()));
  CHECK_FALSE(mine.hear({notice, 1}));
  CHECK(mine.knows(peer.furthest()));
}
