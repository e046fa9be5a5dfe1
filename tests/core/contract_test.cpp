#undef DIST_CONTRACT_LEVEL
#define DIST_CONTRACT_LEVEL 2
#include <dist/core/contract.hpp>

#include <doctest/doctest.h>

#include <string>

#include "support/stderr_of.hpp"

TEST_CASE("a satisfied contract only evaluates its condition") {
  int evaluated = 0;
  DIST_EXPECT(++evaluated == 1);
  DIST_EXPECT_INNER(++evaluated == 2);
  CHECK(evaluated == 2);
}

TEST_CASE("a broken contract stops the program with its condition and location") {
  int rows = 3;
  int line = 0;
  const auto ending = testing::stderr_of([&] { DIST_EXPECT(rows > 3); });
  line = __LINE__ - 1;
  CHECK(ending.aborted);
  CHECK(ending.says("dist: broken contract at "));
  CHECK(ending.says("contract_test.cpp:" + std::to_string(line) + ": rows > 3\n"));
}

TEST_CASE("a broken inner contract stops the program at level 2") {
  int index = 5;
  const auto ending = testing::stderr_of([&] { DIST_EXPECT_INNER(index < 5); });
  CHECK(ending.aborted);
  CHECK(ending.says(": index < 5\n"));
}

TEST_CASE("a satisfied contract is silent") {
  const auto ending = testing::stderr_of([] { DIST_EXPECT(1 + 1 == 2); });
  CHECK(!ending.aborted);
  CHECK(ending.stderr_text.empty());
}

TEST_CASE("a contract is an expression, even in a branch without braces and in a constant expression") {
  const auto half = [](int even) constexpr {
    DIST_EXPECT(even % 2 == 0);
    return even / 2;
  };
  static_assert(half(8) == 4);
  bool other_branch = false;
  if (half(2) == 2)
    DIST_EXPECT(false);
  else
    other_branch = true;
  CHECK(other_branch);
}
