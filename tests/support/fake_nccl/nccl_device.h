/// Stands in for NCCL's <nccl_device.h> where a compiler of the host compiles code for GPUs: of what NCCL offers kernels, the
/// windows of memory that all ranks of a node reach.
#pragma once

#include <nccl.h>

#include <cstddef>

/// In memory of a GPU.
struct ncclWindow_vidmem {
  static constexpr int most_peers = 16;
  void* first[most_peers];  // in the memory of each rank, as this one's process knows it
};

struct ncclDevComm {
  int rank, nRanks;
  int lsaRank, lsaSize;
};

struct ncclDevCommRequirements {
  bool lsaMultimem;
  int lsaBarrierCount;
};

extern "C" {
ncclResult_t ncclDevCommCreate(ncclComm_t comm, const ncclDevCommRequirements* requirements, ncclDevComm* made);
ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const ncclDevComm* made);
}

inline void* ncclGetLsaPointer(ncclWindow_t window, std::size_t offset, int peer) {
  return static_cast<char*>(window->first[peer]) + offset;
}
