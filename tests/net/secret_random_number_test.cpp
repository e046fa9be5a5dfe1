#include <dist/net/secret.hpp>

#include <cstdint>
#include <set>

#include <doctest/doctest.h>

TEST_CASE("random numbers are distinct and not 0") {
  std::set<std::uint64_t> drawn;
  for (int i = 0; i < 1000; ++i) drawn.insert(dist::net::random_number());
  CHECK(drawn.size() == 1000);
  CHECK_FALSE(drawn.contains(0));
}
