// expect: <pmix_server.h> of PMIx was not found: install libpmix-dev, and link dist::mpi
// flags: -nostdinc
// alone: the control includes nothing, as compilers do not find MPI by themselves
#ifndef CONTROL
#include <dist/cluster/mpi/pmix_server.hpp>
#endif

int main() {}
