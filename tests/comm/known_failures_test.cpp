#include <dist/comm/known_failures.hpp>

#include <cstdint>
#include <string>

#include <doctest/doctest.h>
#include <support/what_throws.hpp>

using dist::CallSequence;
using dist::FailureNotice;
using dist::detail::KnownFailures;
using dist::detail::NoticeFrom;

namespace {

std::string said(const FailureNotice& failure) {
  return support::what_throws([&] { failure.raise(1, "east"); });
}
bool is(const FailureNotice& failure, const char* part) { return said(failure).find(part) != std::string::npos; }

NoticeFrom told_by(std::size_t peer, const CallSequence& place, const FailureNotice& failure) {
  return {{1, place.position(), failure}, peer};
}

}  // namespace

TEST_CASE("a failure in the run of a member closes it, and the one that closes most runs is thrown") {
  KnownFailures mine;
  CallSequence peer;
  mine.place().begin_run(7);
  peer.begin_run(7);
  CHECK(mine.find_closed() == nullptr);
  const NoticeFrom here = told_by(1, peer, "the disk is full");
  CHECK_FALSE(mine.skip(here));
  mine.note(here);
  REQUIRE(mine.find_closed() != nullptr);
  CHECK(is(mine.find_closed()->notice.failure, "the disk is full"));

  peer.end_run();
  peer.begin_run(7);
  mine.note(told_by(2, peer, "the network is down"));  // in the next run, too
  mine.note(here);                                     // says nothing new
  mine.place().end_run();
  CHECK(mine.find_closed() == nullptr);  // nothing outside of runs is closed
  mine.place().begin_run(7);
  REQUIRE(mine.find_closed() != nullptr);
  CHECK(mine.find_closed()->peer == 2);
  CHECK(is(mine.find_closed()->notice.failure, "the network is down"));
  mine.met();
  CHECK(mine.find_closed() == nullptr);
}

TEST_CASE("a failure in a run that a member has left is skipped, and explains why its member ends") {
  KnownFailures mine;
  CallSequence peer;
  mine.place().begin_run(7);
  peer.begin_run(7);
  const NoticeFrom before = told_by(1, peer, "the disk is full");
  mine.place().end_run();
  mine.place().begin_run(7);
  CHECK(mine.skip(before));
  CHECK(mine.find_closed() == nullptr);
  CHECK(mine.skipped_of(2) == nullptr);
  REQUIRE(mine.skipped_of(1) != nullptr);

  const FailureNotice ended{"its strategy ended"};
  const NoticeFrom by_same = told_by(1, peer, ended.for_good());
  CHECK(is(mine.more_precise(by_same).notice.failure, "the disk is full"));
  CHECK(is(mine.more_precise(told_by(2, peer, ended.for_good())).notice.failure, "its strategy ended"));
  CHECK(is(mine.more_precise(told_by(1, peer, ended)).notice.failure, "its strategy ended"));
  mine.met();
  CHECK(mine.skipped_of(1) == nullptr);
  CHECK(is(mine.more_precise(by_same).notice.failure, "its strategy ended"));
}
