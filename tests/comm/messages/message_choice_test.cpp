#include <dist/comm/messages/message_choice.hpp>
// ranks: 1 2 3 4

#include <doctest/doctest.h>

#include <chrono>

#include <conformance/process_collectives.hpp>
#include <conformance/work_memory.hpp>
#include <dist/comm/auto_all_reduce.hpp>
#include <support/mpi_group.hpp>

static_assert(dist::CrossDeviceOps<dist::AutoAllReduce, dist::mpi::Communicator>);

namespace {

/// Thresholds between the sizes of the suite, so that it uses all three algorithms.
class GroupWithThresholds {
 public:
  using Collectives = dist::AutoAllReduce::On<dist::mpi::Communicator>;
  static constexpr bool every_type = false;

  explicit GroupWithThresholds(std::chrono::nanoseconds timeout)
      : collectives_(dist::mpi::Communicator{dist::mpi::ref(MPI_COMM_WORLD), {.timeout = timeout}},
                     {.tree_up_to = 100, .halving_doubling_up_to = 50'000}) {}

  [[nodiscard]] const Collectives& collectives() const noexcept { return collectives_; }
  void wait_outside() const { MPI_Barrier(MPI_COMM_WORLD); }

 private:
  Collectives collectives_;
};

}  // namespace

TEST_CASE_TEMPLATE_INSTANTIATE(process_collectives, GroupWithThresholds);
TEST_CASE_TEMPLATE_INSTANTIATE(work_memory, GroupWithThresholds);
