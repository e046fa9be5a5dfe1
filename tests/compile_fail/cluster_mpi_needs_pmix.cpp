// expect: <pmix_server.h> of PMIx was not found: install libpmix-dev, and link dist::pmix
// flags: -nostdinc
#include <dist/cluster/mpi/pmix_server.hpp>

int main() {}
