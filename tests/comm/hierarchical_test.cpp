#include <dist/comm/hierarchical.hpp>
// ranks: 2 3 4

#include <dist/comm/mpi/mpi_all_reduce.hpp>
#include <dist/comm/ring_all_reduce.hpp>

#include <cstddef>
#include <span>
#include <vector>

#include <doctest/doctest.h>

#include <conformance/process_collectives.hpp>
#include <support/node_group.hpp>

// Nodes of equal and of different sizes, and ranks that do not follow each other on a node.
TEST_CASE_TEMPLATE_INSTANTIATE(process_collectives, support::NodeGroup<dist::RingAllReduce, support::TwoNodes>,
                               support::NodeGroup<dist::MpiAllReduce, support::DealtNodes>);

TEST_CASE("a layout says who is where") {
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
