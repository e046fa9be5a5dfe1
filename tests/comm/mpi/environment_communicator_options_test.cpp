#include <dist/comm/mpi/environment.hpp>
// ranks: 1

#include <chrono>
#include <concepts>
#include <cstddef>

#include <doctest/doctest.h>

namespace {

static_assert(!std::constructible_from<dist::mpi::CommRef, std::nullptr_t>);
static_assert(!std::convertible_to<MPI_Comm, dist::mpi::CommRef>);

TEST_CASE("a reference to a communicator of the program does not change it") {
  CHECK(dist::mpi::ref(MPI_COMM_WORLD).get() == MPI_COMM_WORLD);
  CHECK(dist::mpi::ref(MPI_COMM_NULL).get() == MPI_COMM_NULL);
}

TEST_CASE("by default calls are compared, and waits are limited to ten minutes") {
  const dist::mpi::CommunicatorOptions options;
  CHECK(options.timeout == std::chrono::minutes{10});
  CHECK(options.checks == dist::CollectiveChecks::calls);
  CHECK(options.health == nullptr);
}

}  // namespace
