// The server that gives MPI_Init the addresses of its peers. PMIx alone starts no worker, so only its version is
// read.
#include <pmix.h>

int main() { return PMIx_Get_version() == nullptr ? 1 : 0; }
