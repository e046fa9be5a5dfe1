#include <dist/core/log.hpp>

#include <doctest/doctest.h>

#include <cstdlib>

#include "support/stderr_of.hpp"

TEST_CASE("a warning is one line, printed once") {
  const auto ending = testing::stderr_of([] {
    unsetenv("DIST_WARNINGS");
    dist::detail::Warning first, second;
    if (first.was_given()) std::abort();
    for (int call = 0; call < 3; ++call) first.emit("one.");
    if (!first.was_given()) std::abort();
    second.emit("two.");
  });
  CHECK(!ending.aborted);
  CHECK(ending.stderr_text == "dist: one.\ndist: two.\n");
}

TEST_CASE("only DIST_WARNINGS=0 disables warnings") {
  const auto warned = [](const char* chosen) {
    return testing::stderr_of([&] {
      setenv("DIST_WARNINGS", chosen, 1);
      dist::detail::Warning warning;
      warning.emit("one.");
    });
  };
  CHECK(warned("0").stderr_text.empty());
  for (const char* chosen : {"1", "", "off"}) CHECK(warned(chosen).stderr_text == "dist: one.\n");
}
