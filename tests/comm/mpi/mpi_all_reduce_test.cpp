#include <dist/comm/mpi/mpi_all_reduce.hpp>
// ranks: 1 2 3 4

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <vector>

#include <conformance/process_collectives.hpp>
#include <conformance/work_memory.hpp>
#include <support/mpi_group.hpp>

static_assert(dist::CrossDeviceOps<dist::MpiAllReduce, dist::mpi::Communicator>);

TEST_CASE_TEMPLATE_INSTANTIATE(process_collectives, support::MpiGroup<dist::MpiAllReduce>);
TEST_CASE_TEMPLATE_INSTANTIATE(work_memory, support::MpiGroup<dist::MpiAllReduce>);

TEST_CASE("what is too much for one call of MPI goes in pieces") {
  using InPieces = dist::detail::MessageCollectives<dist::mpi::Communicator, dist::detail::MpiAlgorithm<1024>>;
  const InPieces ops{dist::mpi::Communicator{dist::mpi::ref(MPI_COMM_WORLD)}};
  const std::size_t members = ops.communicator().size();
  const std::size_t rank = ops.communicator().rank();
  const auto all = static_cast<float>(members);
  constexpr std::size_t count = 5000;
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i + rank);
  const float ranks = all * (all - 1) / 2;
  int wrong = 0;

  std::vector<float> sums = values;
  ops.all_reduce(dist::sum, std::span{sums});
  for (std::size_t i = 0; i < count; ++i) wrong += sums[i] != static_cast<float>(i) * all + ranks;

  std::vector<float> root = values;
  ops.broadcast(members - 1, std::span{root});
  for (std::size_t i = 0; i < count; ++i) wrong += root[i] != static_cast<float>(i + members - 1);

  std::vector<float> updated(count, 1);
  ops.reduce_and_apply(dist::sum, std::span<const float>{values}, std::span{updated},
                       [](std::size_t, float weight, float gradient) { return weight + gradient; });
  for (std::size_t i = 0; i < count; ++i) wrong += updated[i] != 1 + static_cast<float>(i) * all + ranks;

  std::vector<std::size_t> counts;
  std::vector<float> expected;
  for (std::size_t member = 0; member < members; ++member) {
    counts.push_back(count + member);
    expected.insert(expected.end(), count + member, static_cast<float>(member));
  }
  std::vector<float> gathered(expected.size());
  const std::vector<float> mine(counts[rank], static_cast<float>(rank));
  ops.all_gather(std::span<const float>{mine}, std::span<const std::size_t>{counts}, std::span{gathered});
  CHECK(gathered == expected);
  CHECK(wrong == 0);
}
