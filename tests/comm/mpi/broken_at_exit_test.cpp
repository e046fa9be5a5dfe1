// The members of a broken communicator tell each other when MPI is finalised. Where the library has started MPI, that is after
// static objects have gone, broken communicators among them.
// ranks: 2
#include <dist/comm/mpi/communicator_state.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <memory>

namespace {

using namespace std::chrono_literals;
using dist::mpi::detail::CommunicatorState;

/// Registered before any static object of a function is made, so called after all of them have gone.
const int registered = std::atexit([] { PMPI_Finalize(); });

}  // namespace

extern "C" int MPI_Finalize() { return MPI_SUCCESS; }

TEST_CASE("a broken communicator outlives static objects (the address sanitizer looks at the exit)") {
  REQUIRE(registered == 0);
  auto state = std::make_shared<CommunicatorState>(dist::mpi::ref(MPI_COMM_WORLD),
                                                   dist::mpi::CommunicatorOptions{.timeout = 60s});
  if (state->rank() == 1) return;
  CHECK_THROWS_AS(state->meet({.operation = "barrier"}, 60'000'000'000), dist::CollectiveMismatch);
  CHECK(state->is_broken());
}
