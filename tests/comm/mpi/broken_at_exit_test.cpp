// The members of a broken communicator notify each other in MPI_Finalize. If the library has started MPI, this happens
// after the destruction of static objects, including broken communicators.
// ranks: 2
#include <dist/comm/mpi/communicator_state.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <memory>

namespace {

using namespace std::chrono_literals;
using dist::mpi::detail::CommunicatorState;

/// Registered before function-local static objects are created, so it runs after their destruction.
const int registered = std::atexit([] { PMPI_Finalize(); });

}  // namespace

extern "C" int MPI_Finalize() { return MPI_SUCCESS; }

TEST_CASE("a broken communicator outlives static objects (checked by the address sanitizer at exit)") {
  REQUIRE(registered == 0);
  auto state = std::make_shared<CommunicatorState>(dist::mpi::ref(MPI_COMM_WORLD),
                                                   dist::mpi::CommunicatorOptions{.timeout = 60s});
  if (state->rank() == 1) return;
  CHECK_THROWS_AS(state->meet({.operation = "barrier"}, 60'000'000'000), dist::CollectiveMismatch);
  CHECK(state->is_broken());
}
