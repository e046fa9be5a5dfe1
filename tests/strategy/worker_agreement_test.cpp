#include <dist/strategy/worker_agreement.hpp>
// ranks: 1 2 3

#include <dist/comm/mpi/agreement.hpp>
#include <dist/comm/mpi/communicator.hpp>

#include <doctest/doctest.h>

static_assert(dist::data::Agreement<dist::WorkerAgreement<dist::mpi::Agreement>>);

TEST_CASE("one process agrees with itself, and asks nobody") {
  auto pass = dist::WorkerAgreement<dist::mpi::Agreement>{}.begin();
  pass.start(true);
  CHECK(pass.is_done());
  pass.wait();
  CHECK(pass.any());
  pass.start(false);
  CHECK_FALSE(pass.any());
}

TEST_CASE("several processes agree through MPI, pass after pass (spec I24, I25)") {
  const dist::mpi::Communicator world{dist::mpi::ref(MPI_COMM_WORLD)};
  const dist::WorkerAgreement agreement{dist::mpi::Agreement{world}};
  for (int round = 0; round < 3; ++round) {
    auto pass = agreement.begin();
    pass.start(world.rank() == 0);
    CHECK(pass.any());
    pass.start(world.rank() != 0);
    CHECK(pass.any() == (world.size() > 1));
    pass.start(false);
    pass.wait();
    CHECK(pass.is_done());
    CHECK_FALSE(pass.any());
  }
}
