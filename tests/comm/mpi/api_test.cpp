#include <dist/comm/mpi/api.hpp>
// ranks: 1

#include <doctest/doctest.h>

#include <string>

TEST_CASE("a call of MPI that fails throws MPI's own text") {
  CHECK_NOTHROW(dist::mpi::check(MPI_SUCCESS, "MPI_Isend"));
  std::string message;
  try {
    dist::mpi::check(MPI_ERR_COUNT, "MPI_Isend");
  } catch (const dist::mpi::MpiError& error) {
    CHECK(error.code() == MPI_ERR_COUNT);
    message = error.what();
  }
  CAPTURE(message);
  CHECK(message.find("MPI_Isend failed (MPI says: ") == 0);
  CHECK(message.find("count") != std::string::npos);
}
