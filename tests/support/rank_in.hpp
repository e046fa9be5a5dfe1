// The position of this process among others, for tests under mpirun.
#pragma once

#include <mpi.h>

#include <cstddef>

namespace support {

inline std::size_t rank_in(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  return static_cast<std::size_t>(rank);
}
inline std::size_t size_of(MPI_Comm comm) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  return static_cast<std::size_t>(size);
}

}  // namespace support
