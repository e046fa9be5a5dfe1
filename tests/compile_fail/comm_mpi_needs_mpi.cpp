// expect: <mpi.h> of MPI was not found: install libopenmpi-dev, and link dist::mpi
// flags: -nostdinc
#ifndef CONTROL
#include <dist/comm/mpi/api.hpp>
#endif

int main() {}
