// expect: <mpi.h> of MPI was not found: install libopenmpi-dev, and link dist::mpi
// flags: -nostdinc
#include <dist/comm/mpi/api.hpp>

int main() {}
