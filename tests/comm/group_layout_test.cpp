#include <dist/comm/group_layout.hpp>

#include <cstddef>
#include <vector>

#include <doctest/doctest.h>

TEST_CASE("a layout gives each member's group and number") {
  const dist::GroupLayout layout{{0, 2, 4, 1, 3}, {3, 2}, 1, 0};
  CHECK(layout.rank() == 1);
  CHECK(layout.size() == 5);
  CHECK(layout.group() == 1);
  CHECK(layout.groups() == 2);
  CHECK(layout.members(0).size() == 3);
  CHECK(layout.members(1)[1] == 3);
  CHECK_FALSE(layout.in_order());
  CHECK(layout.place_of(4).group == 0);
  CHECK(layout.place_of(4).member == 2);
  CHECK(layout.place_of(3).group == 1);
  CHECK(layout.place_of(3).member == 1);
  const auto uniform = dist::GroupLayout::uniform(3, 2, 2, 1);
  CHECK(uniform.rank() == 5);
  CHECK(uniform.size() == 6);
  CHECK(uniform.in_order());
  CHECK(uniform.place_of(3).group == 1);
  CHECK(uniform.place_of(3).member == 1);
}

TEST_CASE("divided replaces members by their parts") {
  const dist::GroupLayout layout{{0, 2, 4, 1, 3}, {3, 2}, 1, 0};
  const dist::GroupLayout parts = layout.divided(2, 1);
  CHECK(parts.rank() == 3);
  CHECK(parts.size() == 10);
  CHECK(parts.groups() == 2);
  CHECK(parts.group() == 1);
  CHECK(std::vector<std::size_t>(parts.members(0).begin(), parts.members(0).end()) ==
        std::vector<std::size_t>{0, 1, 4, 5, 8, 9});
  CHECK(std::vector<std::size_t>(parts.members(1).begin(), parts.members(1).end()) ==
        std::vector<std::size_t>{2, 3, 6, 7});
  CHECK_FALSE(parts.in_order());
  CHECK(dist::GroupLayout::uniform(2, 2, 0, 1).divided(3, 2).in_order());
}
