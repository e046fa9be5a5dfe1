/// Replaces NCCL's `<nccl_device.h>` if a host compiler compiles GPU code. Provides only windows of memory that all
/// ranks of a node can access.
#pragma once

#include <nccl.h>

#include <cstddef>

struct ncclWindow_vidmem {
  static constexpr int most_peers = 16;
  void* first[most_peers];  // in the memory of each rank, as an address in this process
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
