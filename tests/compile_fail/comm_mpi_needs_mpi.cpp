// expect: <mpi.h> of MPI was not found: install libopenmpi-dev, and link dist::mpi
// flags: -nostdinc
// alone: the control includes nothing, as compilers do not find MPI by themselves
#ifndef CONTROL
#include <dist/comm/mpi/api.hpp>
#endif

int main() {}
