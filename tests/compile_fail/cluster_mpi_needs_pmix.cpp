// expect: <pmix_server.h> of PMIx was not found: install libpmix-dev, and link dist::mpi
// flags: -nostdinc
#ifndef CONTROL
#include <dist/cluster/mpi/pmix_server.hpp>
#endif

int main() {}
