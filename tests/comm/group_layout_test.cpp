#include <dist/comm/group_layout.hpp>

#include <doctest/doctest.h>

TEST_CASE("a layout says which member is where") {
  const dist::GroupLayout layout{{0, 2, 4, 1, 3}, {3, 2}, 1, 0};
  CHECK(layout.rank() == 1);
  CHECK(layout.size() == 5);
  CHECK(layout.group() == 1);
  CHECK(layout.groups() == 2);
  CHECK(layout.members(0).size() == 3);
  CHECK(layout.members(1)[1] == 3);
  CHECK_FALSE(layout.in_order());
  const auto uniform = dist::GroupLayout::uniform(3, 2, 2, 1);
  CHECK(uniform.rank() == 5);
  CHECK(uniform.size() == 6);
  CHECK(uniform.in_order());
}
