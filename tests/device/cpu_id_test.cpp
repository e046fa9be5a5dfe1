#include <dist/device/cpu_id.hpp>

#include <doctest/doctest.h>

#include <vector>

TEST_CASE("keys are compared from the first number on, and what is equal keeps its order") {
  using dist::detail::ProcessorKey;
  struct Entry {
    ProcessorKey key;
    int place;
  };
  std::vector<Entry> entries{{{1, 0, 5}, 0}, {{0, 9}, 1}, {{1, 0, 4}, 2}, {{0, 9}, 3}};
  dist::detail::sort_almost_sorted(entries, [](const Entry& a, const Entry& b) { return a.key < b.key; });
  std::vector<int> places;
  for (const Entry& entry : entries) places.push_back(entry.place);
  CHECK(places == std::vector{1, 3, 2, 0});
}
