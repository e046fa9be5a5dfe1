#include <dist/device/pending.hpp>

#include <doctest/doctest.h>

#include <memory>

#include <dist/core/future.hpp>

namespace {

/// Delivers the value in its wait.
struct Bringing {
  std::shared_ptr<dist::HostCopyOf<int>> arrival;
  dist::HostCopyState::State becomes;
  int* waits;

  void wait() const {
    ++*waits;
    arrival->value = 7;
    arrival->state = becomes;
  }
  [[nodiscard]] static bool is_done() { return false; }
};

}  // namespace

static_assert(dist::Future<dist::Pending<int, Bringing>>);

TEST_CASE("the first read of a value waits for it") {
  const auto arrival = std::make_shared<dist::HostCopyOf<int>>();
  int waits = 0;
  const dist::Pending<int, Bringing> pending{{arrival, dist::HostCopyState::State::there, &waits}, arrival};
  const auto copy = pending;
  CHECK(!pending.is_done());
  CHECK(waits == 0);
  CHECK(copy.value() == 7);
  CHECK(pending.is_done());
  CHECK(pending.value() == 7);
  CHECK(waits == 1);
}

TEST_CASE("a lost value throws on every read") {
  const auto arrival = std::make_shared<dist::HostCopyOf<int>>();
  int waits = 0;
  const dist::Pending<int, Bringing> pending{{arrival, dist::HostCopyState::State::lost, &waits}, arrival};
  for (int again = 0; again < 2; ++again)
    CHECK_THROWS_WITH_AS(static_cast<void>(pending.value()), doctest::Contains("does not reach the host"),
                         dist::InvalidArgument);
  CHECK(pending.is_done());
  CHECK(waits == 1);
}
