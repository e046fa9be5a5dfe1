// A process without a launcher has no role.
#include <dist/cluster/mpi/roles_resolver.hpp>

#include <doctest/doctest.h>

#include "support/what_throws.hpp"

TEST_CASE("roles without a launcher are refused") {
  CHECK(support::what_throws<dist::InvalidArgument>([] { dist::MpiRolesResolver{{.parameter_servers = 2}}; }) ==
        "No MPI launcher has started this process (its variables, such as OMPI_COMM_WORLD_SIZE, are not set). Start "
        "with mpirun -n 5 PROGRAM, or more processes.");
}
