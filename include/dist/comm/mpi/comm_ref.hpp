#pragma once

#include <cstddef>

#include <dist/comm/mpi/api.hpp>
#include <dist/core/error.hpp>

namespace dist::mpi {

/// Reference to an MPI communicator of the program.
class CommRef {
 public:
  /// Refers to `comm`, which the program owns and must keep until no group uses it.
  explicit CommRef(MPI_Comm comm) noexcept : comm_(comm) {}
  explicit CommRef(std::nullptr_t) = delete;

  /// The handle for MPI calls.
  [[nodiscard]] MPI_Comm get() const noexcept { return comm_; }

 private:
  MPI_Comm comm_;
};

/// Refers to a communicator that the host program owns: `mpi::ref(MPI_COMM_WORLD)`.
[[nodiscard]] inline CommRef ref(MPI_Comm comm) noexcept { return CommRef{comm}; }

namespace detail {

[[nodiscard]] inline std::size_t rank_in(MPI_Comm comm) {
  int rank = 0;
  DIST_MPI_CALL(MPI_Comm_rank(comm, &rank));
  return static_cast<std::size_t>(rank);
}
[[nodiscard]] inline std::size_t size_of(MPI_Comm comm) {
  int size = 0;
  DIST_MPI_CALL(MPI_Comm_size(comm, &size));
  return static_cast<std::size_t>(size);
}

/// Throws InvalidArgument if `comm` is null or an intercommunicator.
inline void require_group(CommRef comm) {
  int joins_two = 0;
  if (comm.get() != MPI_COMM_NULL) DIST_MPI_CALL(MPI_Comm_test_inter(comm.get(), &joins_two));
  if (comm.get() == MPI_COMM_NULL || joins_two != 0)
    throw InvalidArgument(
        "An MPI communicator is not a group of workers",
        joins_two != 0 ? "it joins two groups" : "it is MPI_COMM_NULL, which processes outside of a group receive",
        "Give a communicator of one group, only in the processes of this group");
}

}  // namespace detail

}  // namespace dist::mpi
