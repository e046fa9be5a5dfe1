#include <dist/comm/hierarchical.hpp>
// ranks: 2 3 4

#include <dist/comm/mpi/mpi_all_reduce.hpp>
#include <dist/comm/ring_all_reduce.hpp>

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <conformance/process_collectives.hpp>
#include <support/node_group.hpp>
#include <support/what_throws.hpp>

// Nodes of equal and of different sizes, and ranks that do not follow each other on a node.
TEST_CASE_TEMPLATE_INSTANTIATE(process_collectives, support::NodeGroup<dist::RingAllReduce, support::TwoNodes>,
                               support::NodeGroup<dist::MpiAllReduce, support::DealtNodes>);

TEST_CASE_TEMPLATE("the same collectives with another deadline name the late member, on whichever level (spec H13)",
                   Nodes, support::OneNode, support::TwoNodes, support::DealtNodes) {
  using namespace std::chrono_literals;
  support::NodeGroup<dist::RingAllReduce, Nodes> group{60s};
  const auto& patient = group.collectives();
  CHECK_THROWS_AS(patient.with_timeout(-1ns), dist::InvalidArgument);
  const std::size_t late = patient.layout().size() - 1;
  const bool is_late = patient.layout().rank() == late;
  if (is_late) group.wait_outside();  // until the others have given up
  const auto begin = std::chrono::steady_clock::now();
  std::vector<float> values(1000, 1);
  const std::string said =
      support::what_throws([&] { patient.with_timeout(200ms).all_reduce(dist::sum, std::span<float>{values}); });
  if (!is_late) {
    CAPTURE(said);
    CHECK(said.find(dist::text("orker ", late, " (host ")) != std::string::npos);
    CHECK(said.find("and waited ") != std::string::npos);
    const auto waited = std::chrono::steady_clock::now() - begin;
    CHECK(waited >= 200ms);
    CHECK(waited < 30s);
    group.wait_outside();
  }
}
