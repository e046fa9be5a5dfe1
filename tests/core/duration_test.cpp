#include <dist/core/duration.hpp>

#include <doctest/doctest.h>

TEST_CASE("durations convert, and the clocks for deadlines are available") {
  using namespace std::chrono_literals;
  constexpr std::chrono::nanoseconds timeout = 1500ms;
  static_assert(timeout.count() == 1'500'000'000);
  static_assert(std::chrono::ceil<std::chrono::seconds>(timeout) == 2s);
  static_assert(std::chrono::duration_cast<std::chrono::seconds>(std::chrono::minutes{10}).count() == 600);
  const auto before = std::chrono::steady_clock::now();
  CHECK(std::chrono::steady_clock::now() - before < std::chrono::hours{1});
  CHECK(std::chrono::system_clock::now().time_since_epoch() > 0s);
}
