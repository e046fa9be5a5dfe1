#include <dist/comm/mpi/mpi_all_reduce.hpp>
// ranks: 1 2 3 4

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include <conformance/process_collectives.hpp>
#include <support/allocations.hpp>
#include <support/mpi_group.hpp>

static_assert(dist::CrossDeviceOps<dist::MpiAllReduce, dist::mpi::Communicator>);

TEST_CASE_TEMPLATE_INSTANTIATE(process_collectives, support::MpiGroup<dist::MpiAllReduce>);

TEST_CASE("once work memory is there, nothing is allocated") {
  const support::MpiGroup<dist::MpiAllReduce> group{std::chrono::seconds{60}};
  const auto& ops = group.collectives();
  std::vector<float> values(200000, 1.0f);
  std::vector<float> mirror(values.size());
  std::vector<dist::BFloat16> halves(30000);
  const auto work = [&] {
    ops.all_reduce(dist::sum, std::span<float>{values});
    ops.all_reduce(dist::mean, std::span<float>{values}.first(3));
    ops.all_reduce(dist::sum, std::span<dist::BFloat16>{halves});
    ops.reduce_and_apply(dist::sum, std::span<float>{values}, std::span<float>{mirror},
                         [](std::size_t, std::span<float>, std::span<const float>) {});
    ops.broadcast(0, std::span<float>{mirror});
  };
  work();
  const std::size_t before = allocations;
  work();
  CHECK(allocations == before);
}
