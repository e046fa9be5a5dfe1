#include <dist/core/short_list.hpp>

#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "support/allocations.hpp"

using dist::detail::ShortList;

namespace {

template <class List>
std::vector<int> values_of(const List& list) {
  return {list.begin(), list.end()};
}

}  // namespace

TEST_CASE("a short list does not allocate, and keeps its values when it becomes long") {
  ShortList<int, 3> list;
  CHECK(list.empty());
  CHECK(values_of(ShortList<int, 3>{4, 5}) == std::vector<int>{4, 5});
  const std::size_t before = allocations;
  for (int i = 0; i < 3; ++i) list.push_back(i);
  CHECK(allocations == before);
  CHECK(values_of(list) == std::vector<int>{0, 1, 2});
  std::vector<int> expected(100);
  std::iota(expected.begin(), expected.end(), 0);
  list.append(expected.data() + 3, 97);
  CHECK(values_of(list) == expected);
  list.push_back(list[99]);
  CHECK(list.size() == 101);
  CHECK(list[100] == 99);
}

TEST_CASE("an append that exceeds the inline capacity keeps all values") {
  ShortList<int, 3> list;
  const int values[] = {1, 2, 3, 4};
  list.append(values, 2);
  list.append(values, 2);
  CHECK(values_of(list) == std::vector<int>{1, 2, 1, 2});
  list.append(values, 0);
  CHECK(list.size() == 4);
}

TEST_CASE("copies have separate values, short or long") {
  for (const std::size_t count : {2U, 5U}) {
    CAPTURE(count);
    ShortList<int, 3> list;
    for (std::size_t i = 0; i < count; ++i) list.push_back(7);
    const ShortList<int, 3> copy = list;
    const ShortList<int, 3> moved = std::move(list);
    list = {};
    list.push_back(1);
    CHECK(values_of(copy) == std::vector<int>(count, 7));
    CHECK(values_of(moved) == std::vector<int>(count, 7));
    CHECK(values_of(list) == std::vector<int>{1});
  }
}

TEST_CASE("taking the values empties the list") {
  for (const int count : {0, 2, 5}) {
    CAPTURE(count);
    ShortList<int, 3> list;
    for (int i = 0; i < count; ++i) list.push_back(i);
    const std::vector<int> taken = list.take();
    CHECK(taken.size() == static_cast<std::size_t>(count));
    CHECK(list.empty());
    list.push_back(9);
    CHECK(values_of(list) == std::vector<int>{9});
  }
}
