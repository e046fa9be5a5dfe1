#include <dist/comm/mpi/api.hpp>
// ranks: 1

#include <doctest/doctest.h>

#include <string>

namespace {

int returned(int code, int) { return code; }

}  // namespace

TEST_CASE("a failed MPI call throws MPI's error text") {
  CHECK_NOTHROW(DIST_MPI_CALL(MPI_SUCCESS));
  std::string message;
  constexpr int line = __LINE__ + 2;
  try {
    DIST_MPI_CALL(returned(MPI_ERR_COUNT, 2));
  } catch (const dist::mpi::MpiError& error) {
    CHECK(error.code() == MPI_ERR_COUNT);
    message = error.what();
  }
  CAPTURE(message);
  CHECK(message.find("returned failed (MPI reports: ") == 0);
  CHECK(message.find(dist::concat("api_test.cpp:", line)) != std::string::npos);
  CHECK(message.find("count") != std::string::npos);
}
