#include <dist/coordinator/remote_value.hpp>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include <doctest/doctest.h>

#include "support/what_throws.hpp"

using namespace std::chrono_literals;
using dist::RemoteState;
using dist::detail::RemoteResult;

namespace {
RemoteResult::Clock::time_point in(std::chrono::milliseconds wait) { return RemoteResult::Clock::now() + wait; }
}  // namespace

TEST_CASE("wait returns the result, and the first outcome counts (spec L08)") {
  RemoteResult result;
  CHECK(result.state() == RemoteState::not_ready);
  CHECK(support::what_throws<dist::DeadlineExceeded>([&] { static_cast<void>(result.wait(in(10ms))); }) ==
        "The result of a scheduled function did not arrive in time (the function waits for a worker, or still runs). "
        "Give fetch a longer timeout.");
  std::thread worker([&] {
    std::this_thread::sleep_for(10ms);
    result.finish({std::byte{1}, std::byte{2}});
  });
  CHECK(result.wait({}).size() == 2);
  worker.join();
  result.finish({});
  result.fail(RemoteState::failed, std::make_exception_ptr(std::runtime_error("late")));
  CHECK(result.state() == RemoteState::ready);
  CHECK(result.wait(in(0ms)).size() == 2);
}

TEST_CASE("every wait throws the failure (spec L08)") {
  RemoteResult result;
  std::atomic<int> threw{0};
  const auto wait = [&] {
    try {
      static_cast<void>(result.wait(in(10s)));
    } catch (const std::out_of_range&) {
      ++threw;
    }
  };
  std::thread first(wait), second(wait);
  result.fail(RemoteState::cancelled, std::make_exception_ptr(std::out_of_range("no")));
  first.join();
  second.join();
  wait();
  CHECK(threw == 3);
  CHECK(result.state() == RemoteState::cancelled);
  result.finish({});
  CHECK(result.state() == RemoteState::cancelled);
}

TEST_CASE("states have names") {
  CHECK(to_string_view(RemoteState::not_ready) == "not ready");
  CHECK(to_string_view(RemoteState::ready) == "ready");
  CHECK(to_string_view(RemoteState::failed) == "failed");
  CHECK(to_string_view(RemoteState::cancelled) == "cancelled");
  CHECK(to_string_view(RemoteState::aborted) == "aborted");
}
