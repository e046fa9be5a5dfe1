#include <dist/nn/deferred_tally.hpp>

#include <doctest/doctest.h>

#include <stdexcept>

#include <dist/core/future.hpp>

namespace nn = dist::nn;

namespace {

struct Tally {
  double total = 0;
  int count = 0;
};

/// A number that is there once `is_there`, and counts who waits for it.
struct Later {
  double number;
  const bool* is_there;
  int* waits;

  void wait() const { ++*waits; }
  [[nodiscard]] bool is_done() const { return *is_there; }
};
auto tally_of(const Later& later) {
  return nn::DeferredTally{later, [](const Later& computed) {
                             computed.wait();
                             if (computed.number < 0) throw std::runtime_error("no number");
                             return Tally{computed.number, 2};
                           }};
}

}  // namespace

TEST_CASE("tallies are taken in order, as far as they are there") {
  nn::detail::DeferredTallies<Tally> tallies;
  bool first = false, second = true, third = false;
  int waits = 0;
  for (const bool* is_there : {&first, &second, &third}) tallies.add(tally_of({1, is_there, &waits}));
  CHECK(tallies.take(false).count == 0);  // the second one's turn is after the first
  CHECK(waits == 0);
  first = true;
  const Tally two = tallies.take(false);
  CHECK(two.total == 2);
  CHECK(two.count == 4);
  CHECK(tallies.take(false).count == 0);
  CHECK(tallies.take(true).count == 2);
  CHECK(waits == 3);
  CHECK(tallies.take(true).count == 0);
}

TEST_CASE("a tally that cannot be had is told once, and those before and behind it are not lost") {
  nn::detail::DeferredTallies<Tally> tallies;
  const bool is_there = true;
  int waits = 0;
  for (const double number : {1.0, -1.0, 4.0}) tallies.add(tally_of({number, &is_there, &waits}));
  CHECK_THROWS_AS(static_cast<void>(tallies.take(true)), std::runtime_error);
  const Tally others = tallies.take(true);
  CHECK(others.total == 5);
  CHECK(others.count == 4);
  CHECK(tallies.take(true).count == 0);
}

TEST_CASE("tallies that are forgotten are waited for by nobody") {
  nn::detail::DeferredTallies<Tally> tallies;
  const bool is_there = false;
  int waits = 0;
  tallies.add(tally_of({1, &is_there, &waits}));
  tallies.clear();
  CHECK(tallies.take(true).count == 0);
  CHECK(waits == 0);
  for (const double number : {1.0, -1.0}) tallies.add(tally_of({number, &is_there, &waits}));
  CHECK_THROWS_AS(static_cast<void>(tallies.take(true)), std::runtime_error);
  tallies.clear();  // also of what was added up
  CHECK(tallies.take(true).count == 0);
}

TEST_CASE("two works are done when both are") {
  bool first = true, second = false;
  int waits = 0;
  const nn::detail::AllOf both{Later{1, &first, &waits}, Later{2, &second, &waits}};
  static_assert(dist::Future<nn::detail::AllOf<Later, Later>>);
  CHECK(!both.is_done());
  second = true;
  CHECK(both.is_done());
  both.wait();
  CHECK(waits == 2);
}
