#include <dist/cluster/mpi/rendezvous.hpp>

#include <doctest/doctest.h>

using dist::detail::WorldFailure;

TEST_CASE("a failure is the same error in every process") {
  const WorldFailure late{WorldFailure::Kind::deadline, {"Worker 2 has not joined", "no connection", "Start it"}};
  const WorldFailure read = WorldFailure::from(late.record());
  CHECK_THROWS_WITH_AS(read.raise(), "Worker 2 has not joined (no connection). Start it.", dist::DeadlineExceeded);
  const WorldFailure twice{WorldFailure::Kind::rendezvous, {"Worker 2 has joined twice", "again", "Count"}};
  CHECK_THROWS_WITH_AS(WorldFailure::from(twice.record()).raise(), "Worker 2 has joined twice (again). Count.",
                       dist::RendezvousError);
}

TEST_CASE("a failure that is cut is refused") {
  const std::vector<std::byte> record = WorldFailure{WorldFailure::Kind::deadline, {"a", "b", "c"}}.record();
  for (std::size_t size = 0; size < record.size(); ++size)
    CHECK_THROWS_AS(static_cast<void>(WorldFailure::from(std::span{record}.first(size))), dist::net::FrameError);
}
