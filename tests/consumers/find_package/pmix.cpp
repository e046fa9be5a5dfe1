// The server that tells MPI_Init where its peers are: PMIx alone starts no worker, so it is only asked what it is.
#include <pmix.h>

int main() { return PMIx_Get_version() == nullptr ? 1 : 0; }
