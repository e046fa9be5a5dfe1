#include <dist/device/await.hpp>

#include <doctest/doctest.h>

#include <string>

#include <support/what_throws.hpp>

using dist::detail::await;

TEST_CASE("a wait asks whether the device's work is over, and pauses in between") {
  int pauses = 0;
  await([&] { return pauses == 3; }, [&] { ++pauses; }, [] { return "a copy"; }, std::chrono::nanoseconds{0}, "Look");
  CHECK(pauses == 3);
}

TEST_CASE("a wait that lasts longer than it may says whose work it is, and what to look at") {
  const std::string late = support::what_throws<dist::DeadlineExceeded>([] {
    await([] { return false; }, [] {}, [] { return "queue 1"; }, std::chrono::milliseconds{2}, "Look at the device");
  });
  CHECK(late.find("Work was not done in time: queue 1 (the host waited ") == 0);
  CHECK(late.find("Look at the device, or set a longer timeout") != std::string::npos);
}
