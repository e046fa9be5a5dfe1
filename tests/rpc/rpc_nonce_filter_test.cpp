#include <dist/rpc/rpc.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

namespace rpc = dist::rpc;

TEST_CASE("each number is taken once, in any order") {
  rpc::NonceFilter window;
  std::vector<bool> taken(20'000, false);
  std::uint64_t highest = 0;
  std::uint32_t state = 1;
  for (int i = 0; i < 100'000; ++i) {
    state = state * 1664525u + 1013904223u;
    // Mostly near the highest number, sometimes much larger or smaller.
    std::uint64_t number = highest + 40 - std::min<std::uint64_t>(highest + 40, state >> 8 & 127);
    if (i % 5'000 == 4'999) number = std::min<std::uint64_t>(19'999, highest + 5'000);
    if (i % 100 == 99) number = state >> 4 & 16'383;
    if (number == 0 || number >= taken.size()) continue;
    const bool fresh = !taken[number] && number + rpc::NonceFilter::width > highest;
    REQUIRE(window.remembers(number) == (number + rpc::NonceFilter::width > highest));
    REQUIRE(window.has(number) == (window.remembers(number) && taken[number]));
    REQUIRE(window.take(number) == fresh);
    taken[number] = taken[number] || fresh;
    highest = std::max(highest, number);
  }
  CHECK(highest == 19'999);
}
