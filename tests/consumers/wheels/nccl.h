// Stand-in for NCCL's header.
#define NCCL_MAJOR 2
#define NCCL_MINOR 99
#define NCCL_PATCH 1
extern "C" int ncclGetVersion(int* version);
