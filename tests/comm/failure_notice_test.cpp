#include <dist/comm/failure_notice.hpp>

#include <doctest/doctest.h>

#include <support/what_throws.hpp>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

/// The error thrown by a process that receives the notice as bytes.
template <class E>
std::string raised(const dist::FailureNotice& notice) {
  dist::FailureNotice received;
  std::memcpy(static_cast<void*>(&received), &notice, sizeof notice);
  try {
    received.raise(2, "b");
  } catch (const E& error) {
    return error.what();
  }
}
bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST_CASE("an error keeps its type and its text in another process") {
  const dist::DeadlineExceeded late("Worker 1 did not come", "it slept", "Wake it");
  CHECK(has(raised<dist::DeadlineExceeded>(dist::FailureNotice{late}), late.what()));
  CHECK(dist::FailureNotice{late}.breaks_the_group());

  const dist::CollectiveMismatch mismatch("The workers differ", "one sums", "Sum on all");
  CHECK(has(raised<dist::CollectiveMismatch>(dist::FailureNotice{mismatch}), mismatch.what()));
  CHECK_FALSE(dist::FailureNotice{mismatch}.breaks_the_group());

  const dist::Unavailable lost(5, "c", "its process 12 ended", "Start again");
  CHECK(has(raised<dist::Unavailable>(dist::FailureNotice{lost}), "Worker 5 on host c is gone"));
  CHECK(dist::FailureNotice{lost}.breaks_the_group());

  const std::runtime_error own("the label is 11");
  const std::string text = raised<dist::PeerError>(dist::FailureNotice{own});
  CHECK(has(text, "Worker 2 on host b failed"));
  CHECK(has(text, "the label is 11"));
}

TEST_CASE("a text is raised as a PeerError, and long ones are truncated") {
  CHECK(has(raised<dist::PeerError>("no disk"), "no disk"));
  const std::string text = raised<dist::PeerError>(std::string_view{std::string(5000, 'x')});
  CHECK(has(text, std::string(1000, 'x').c_str()));
  CHECK(text.size() < 1300);
}

}  // namespace

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

TEST_CASE("a failure in a member's run closes the run, and the failure that closes most runs is thrown") {
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
  mine.note(here);                                     // nothing new
  mine.place().end_run();
  CHECK(mine.find_closed() == nullptr);  // only runs can be closed
  mine.place().begin_run(7);
  REQUIRE(mine.find_closed() != nullptr);
  CHECK(mine.find_closed()->peer == 2);
  CHECK(is(mine.find_closed()->notice.failure, "the network is down"));
  mine.met();
  CHECK(mine.find_closed() == nullptr);
}

TEST_CASE("a failure in a run that a member has left is skipped, and explains why its member exits") {
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
