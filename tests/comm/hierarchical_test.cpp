#include <dist/comm/hierarchical.hpp>
// ranks: 2 3 4

#include <dist/comm/mpi/mpi_all_reduce.hpp>
#include <dist/comm/ring_all_reduce.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <conformance/process_collectives.hpp>
#include <support/node_group.hpp>
#include <support/what_throws.hpp>

// Nodes of equal and of different sizes, and nodes with non-consecutive ranks.
TEST_CASE_TEMPLATE_INSTANTIATE(process_collectives, support::NodeGroup<dist::RingAllReduce, support::TwoNodes>,
                               support::NodeGroup<dist::MpiAllReduce, support::DealtNodes>);

TEST_CASE_TEMPLATE("every member updates a part of its group's shard, the same in one pass and in two", Group,
                   support::NodeGroup<dist::RingAllReduce, support::TwoNodes>,
                   support::NodeGroup<dist::MpiAllReduce, support::DealtNodes>) {
  Group group{std::chrono::seconds{30}};
  const auto& ops = group.collectives();
  const dist::GroupLayout& layout = group.layout();
  constexpr std::size_t count = 24 * 1024;  // with 2 groups of 1 or 2 members, parts of whole granules
  const std::size_t mine = count / layout.groups() / layout.members(layout.group()).size();
  for (const bool in_window : {false, true}) {
    CAPTURE(in_window);
    std::vector<float> elsewhere(2 * count);
    const std::size_t place = group.window().allocate(2 * count * sizeof(float));
    const std::span<float> memory =
        in_window ? std::span{reinterpret_cast<float*>(group.window().at(0, place)), 2 * count} : std::span{elsewhere};
    const std::span<float> gradients = memory.first(count);
    const std::span<float> mirror = memory.last(count);
    std::fill(gradients.begin(), gradients.end(), 1.0f);
    std::fill(mirror.begin(), mirror.end(), 10.0f);
    std::vector<float> fused(count), scattered(count), updated(count);
    const auto members = static_cast<float>(layout.size());

    ops.reduce_and_apply(dist::sum, std::span<const float>{gradients}, mirror,
                         [marks = fused.data()](std::size_t i, float weight, float gradient) {
                           marks[i] += 1;
                           return weight - gradient;
                         });
    CHECK(std::count(mirror.begin(), mirror.end(), 10 - members) == count);
    ops.reduce_scatter(dist::mean, std::span<const float>{gradients},
                       [&](std::size_t first, std::span<const float> reduced) {
                         for (std::size_t i = 0; i < reduced.size(); ++i) scattered[first + i] += reduced[i];
                       });
    ops.update_shards(std::span<const float>{scattered}, mirror,
                      [marks = updated.data()](std::size_t i, float, float gradient) {
                        marks[i] += 1;
                        return gradient;
                      });
    CHECK(std::count(mirror.begin(), mirror.end(), 1.0f) == count);
    CHECK(std::count(fused.begin(), fused.end(), 1.0f) == mine);
    CHECK(fused == scattered);
    CHECK(fused == updated);
    ops.barrier();
    group.window().release(place, 2 * count * sizeof(float));
  }
}

TEST_CASE_TEMPLATE("with_timeout: the late member is reported on every level (spec H13)", Nodes, support::OneNode,
                   support::TwoNodes, support::DealtNodes) {
  using namespace std::chrono_literals;
  support::NodeGroup<dist::RingAllReduce, Nodes> group{60s};
  const auto& patient = group.collectives();
  CHECK_THROWS_AS(patient.with_timeout(-1ns), dist::InvalidArgument);
  const std::size_t late = patient.layout().size() - 1;
  const bool is_late = patient.layout().rank() == late;
  // Every clock starts before the first wait: a worker may learn the late member from another one with an earlier
  // deadline.
  const auto begin = std::chrono::steady_clock::now();
  group.wait_outside();
  if (is_late) group.wait_outside();  // until the others have given up
  std::vector<float> values(1000, 1);
  const std::string said =
      support::what_throws([&] { patient.with_timeout(200ms).all_reduce(dist::sum, std::span<float>{values}); });
  if (!is_late) {
    CAPTURE(said);
    CHECK(said.find(dist::concat("orker ", late, " (host ")) != std::string::npos);
    CHECK(said.find("and waited ") != std::string::npos);
    const auto waited = std::chrono::steady_clock::now() - begin;
    CHECK(waited >= 200ms);
    CHECK(waited < 30s);
    group.wait_outside();
  }
}
