#include <dist/comm/call_sequence.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <set>

#include <dist/core/error.hpp>

#include "support/what_throws.hpp"

using dist::CallSequence;
using support::what_throws;

namespace {

constexpr std::uint64_t train = 7;
constexpr std::uint64_t predict = 8;

}  // namespace

TEST_CASE("marks differ for calls outside runs, in the run of the last collective, and in each later run") {
  CallSequence place;
  const std::uint64_t outside = place.mark();
  CHECK(CallSequence::describe(outside) == "outside run");
  place.begin_run(train);
  const std::uint64_t first = place.mark();
  CHECK(CallSequence::describe(first) == "in a run, number 1 of the runs and calls since the last collective");
  place.met();
  const std::uint64_t second = place.mark();
  CHECK(CallSequence::describe(second) == "in the same run as the last collective");
  place.met();
  CHECK(place.mark() == second);
  place.end_run();
  CHECK(place.mark() == outside);
  place.begin_call();
  const std::uint64_t call = place.mark();
  CHECK(CallSequence::describe(call) == "outside run, number 1 of the runs and calls since the last collective");
  place.begin_run(predict);
  const std::uint64_t later = place.mark();
  CHECK(CallSequence::describe(later) == "in a run, number 2 of the runs and calls since the last collective");
  CHECK(std::set{outside, first, second, call, later}.size() == 5);
  place.met();
  place.end_run();
  place.begin_run(predict);
  CHECK(place.mark() == first);
}

TEST_CASE("every run counts, even without collectives; functions are compared only after a failure") {
  CallSequence one;
  CallSequence other;
  one.begin_run(predict);
  one.end_run();
  one.begin_run(train);
  other.begin_run(train);
  CHECK(one.mark() != other.mark());
  other.end_run();
  other.begin_run(train);
  CHECK(one.mark() == other.mark());
  one.disturb();
  other.disturb();
  CHECK(one.mark() != other.mark());
  CallSequence same;
  same.begin_run(predict);
  same.end_run();
  same.begin_run(train);
  same.disturb();
  CHECK(one.mark() == same.mark());
  same.end_run();
  CHECK(one.mark() != same.mark());
  CHECK(CallSequence::describe(one.mark()) == "in a run after a failure");
  CHECK(CallSequence::describe(same.mark()) == "outside run, after a failure");
  one.met();
  same.met();
  one.begin_run(train);
  same.begin_run(predict);
  CHECK(one.mark() == same.mark());
}

TEST_CASE("a run of one process alone is not counted, and rejects common calls") {
  CallSequence alone;
  CallSequence other;
  alone.require_shared("all_reduce");
  alone.begin_alone();
  CHECK(alone.is_alone());
  CHECK(what_throws<dist::WrongStrategy>([&] { alone.require_shared("all_reduce"); }) ==
        "all_reduce was called in run_here (the other processes do not share this run). Call strategy.run in all "
        "processes.");
  alone.end_run();
  CHECK(!alone.is_alone());
  alone.begin_run(train);
  other.begin_run(train);
  alone.require_shared("all_reduce");
  CHECK(alone.mark() == other.mark());
}

TEST_CASE("a failure is past for a member that has left the run of the failure") {
  CallSequence failed;
  CallSequence mine;
  const auto both = [&](auto&& call) {
    call(failed);
    call(mine);
  };
  both([](CallSequence& place) { place.begin_run(train); });
  CHECK(!mine.is_past(failed.position()));  // in the same run, before a collective
  both([](CallSequence& place) { place.met(); });
  CHECK(!mine.is_past(failed.position()));  // and after one
  both([](CallSequence& place) { place.end_run(); });
  mine.begin_run(train);
  CHECK(mine.is_past(failed.position()));
  CHECK(!failed.is_past(mine.position()));
  CHECK(!mine.is_past(CallSequence::behind_all));
  // A run of another function is different, even as the first one since the collective.
  failed.begin_run(predict);
  mine.end_run();
  mine.begin_run(train);
  CHECK(!mine.is_past(failed.position()));
}

TEST_CASE("a run in which another member has failed is closed, the next one is open") {
  CallSequence failed;
  CallSequence mine;
  failed.begin_run(train);
  mine.begin_run(train);
  CHECK(!mine.is_closed());
  mine.note(failed.position());
  CHECK(mine.is_closed());
  mine.end_run();
  CHECK(!mine.is_closed());
  mine.begin_call();
  CHECK(!mine.is_closed());
  mine.begin_run(train);
  CHECK(!mine.is_closed());
  mine.note(CallSequence::behind_all);
  CHECK(mine.is_closed());
  mine.met();
  CHECK(!mine.is_closed());
}

TEST_CASE("failures beyond the stored history are not past") {
  CallSequence failed;
  CallSequence mine;
  for (int run = 0; run < 1000; ++run) {
    failed.begin_run(train);
    mine.begin_run(train);
  }
  mine.begin_run(train);
  CHECK(!mine.is_past(failed.position()));
}
