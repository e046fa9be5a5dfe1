#include <dist/nn/plans.hpp>

#include <cstddef>

#include <doctest/doctest.h>

TEST_CASE("a plan is made once per batch size, and the oldest of more than eight is dropped") {
  dist::nn::Plans<std::size_t> plans;
  int made = 0;
  const auto get = [&](std::size_t rows) {
    return plans.for_rows(rows, [&] {
      ++made;
      return 10 * rows;
    });
  };
  for (std::size_t rows = 1; rows <= 8; ++rows) CHECK(get(rows) == 10 * rows);
  for (std::size_t rows = 1; rows <= 8; ++rows) CHECK(get(rows) == 10 * rows);
  CHECK(made == 8);
  CHECK(get(9) == 90);
  CHECK(get(2) == 20);
  CHECK(made == 9);
  CHECK(get(1) == 10);  // dropped for 9
  CHECK(made == 10);
}
