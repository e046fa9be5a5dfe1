#include <dist/coordinator/coordinator_state.hpp>

#include <atomic>
#include <chrono>
#include <thread>

#include <doctest/doctest.h>
#include "support/soon.hpp"

namespace {

using namespace std::chrono_literals;
using dist::ProgressWatch;

}  // namespace

TEST_CASE("missing progress is reported after each timeout, with the time since the last progress (spec L19)") {
  std::atomic<int> reports{0};
  std::atomic<bool> long_enough{true};
  const ProgressWatch watch{20ms,
                            [] {
                              return ProgressWatch::Progress{7, true};
                            },
                            [&](ProgressWatch::Duration since) {
                              ++reports;
                              if (since < 20ms * reports.load()) long_enough = false;
                            }};
  CHECK(support::soon([&] { return reports == 3; }));
  CHECK(long_enough);
}

TEST_CASE("neither progress nor the lack of work is reported (spec L19)") {
  std::atomic<int> looks{0}, reports{0};
  {
    const ProgressWatch gets_on{50ms,
                                [&] {
                                  return ProgressWatch::Progress{static_cast<std::uint64_t>(++looks), true};
                                },
                                [&](ProgressWatch::Duration) { ++reports; }};
    const ProgressWatch idle{10ms,
                             [] {
                               return ProgressWatch::Progress{7, false};
                             },
                             [&](ProgressWatch::Duration) { ++reports; }};
    CHECK(support::soon([&] { return looks > 15; }));
  }
  CHECK(reports == 0);
}

TEST_CASE("a watch ends at once") {
  const auto begin = std::chrono::steady_clock::now();
  {
    const ProgressWatch watch{1h, [] { return ProgressWatch::Progress{}; }, [](ProgressWatch::Duration) {}};
  }
  CHECK(std::chrono::steady_clock::now() - begin < 1min);
}
