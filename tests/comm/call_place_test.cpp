#include <dist/comm/call_place.hpp>

#include <doctest/doctest.h>

#include <cstdint>

using dist::CallPlace;

namespace {

constexpr std::uint64_t train = 7;
constexpr std::uint64_t predict = 8;

}  // namespace

TEST_CASE("calls outside, in the run of the collective before, and in a later run are told apart") {
  CallPlace place;
  const std::uint64_t outside = place.mark();
  CHECK(CallPlace::describe(outside) == "outside run");
  place.begin_run(train);
  const std::uint64_t first = place.mark();
  CHECK(CallPlace::describe(first) == "in a later run than the collective before");
  place.met();
  const std::uint64_t second = place.mark();
  CHECK(CallPlace::describe(second) == "in the same run as the collective before");
  place.met();
  CHECK(place.mark() == second);
  place.end_run();
  CHECK(place.mark() == outside);
  place.begin_call();
  CHECK(place.mark() == outside);
  place.begin_run(predict);
  CHECK(place.mark() == first);
}

TEST_CASE("how many runs had no collective does not matter, except after a failure or a disagreement") {
  CallPlace one;
  CallPlace other;
  one.begin_run(predict);
  one.end_run();
  one.begin_run(train);
  other.begin_run(train);
  CHECK(one.mark() == other.mark());
  one.disturb();
  other.disturb();
  CHECK(one.mark() != other.mark());
  // The same number of runs of other functions.
  other.end_run();
  other.begin_run(train);
  CHECK(one.mark() != other.mark());
  CallPlace same;
  same.begin_run(predict);
  same.end_run();
  same.begin_run(train);
  same.disturb();
  CHECK(one.mark() == same.mark());
  same.end_run();
  CHECK(one.mark() != same.mark());
  one.met();
  same.met();
  one.begin_run(train);
  same.begin_run(predict);
  CHECK(one.mark() == same.mark());
}

TEST_CASE("a failure is past for members that have been through the same run and call in another one") {
  CallPlace failed;
  CallPlace mine;
  const auto both = [&](auto&& call) {
    call(failed);
    call(mine);
  };
  both([](CallPlace& place) { place.begin_run(train); });
  CHECK(!mine.is_past(failed.position()));  // in this run, before a collective
  both([](CallPlace& place) { place.met(); });
  CHECK(!mine.is_past(failed.position()));  // and after one
  both([](CallPlace& place) { place.end_run(); });
  mine.begin_run(train);
  CHECK(mine.is_past(failed.position()));
  CHECK(!failed.is_past(mine.position()));
  CHECK(!mine.is_past(CallPlace::behind_all));
  // A run of another function is another run, although it is the first since the collective, too.
  failed.begin_run(predict);
  mine.end_run();
  mine.begin_run(train);
  CHECK(!mine.is_past(failed.position()));
}

TEST_CASE("a run in which another member has failed is closed, the next one is not") {
  CallPlace failed;
  CallPlace mine;
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
  mine.note(CallPlace::behind_all);
  CHECK(mine.is_closed());
  mine.met();
  CHECK(!mine.is_closed());
}

TEST_CASE("what was begun longer ago than is remembered is no past") {
  CallPlace failed;
  CallPlace mine;
  for (int run = 0; run < 1000; ++run) {
    failed.begin_run(train);
    mine.begin_run(train);
  }
  mine.begin_run(train);
  CHECK(!mine.is_past(failed.position()));
}
