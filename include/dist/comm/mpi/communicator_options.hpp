#pragma once

#include <cstddef>

#include <dist/comm/mpi/api.hpp>
#include <dist/comm/network.hpp>

namespace dist {

namespace mpi {

/// A communicator of MPI that belongs to the program.
class CommRef {
 public:
  explicit CommRef(MPI_Comm comm) noexcept : comm_(comm) {}
  explicit CommRef(std::nullptr_t) = delete;

  [[nodiscard]] MPI_Comm get() const noexcept { return comm_; }

 private:
  MPI_Comm comm_;
};

/// The communicator of a host program, to be used and left as it is: `mpi::ref(MPI_COMM_WORLD)`.
[[nodiscard]] inline CommRef ref(MPI_Comm comm) noexcept { return CommRef{comm}; }

using CommunicatorOptions = NetworkOptions;

namespace detail {

/// Bytes on their way to or from a member.
struct Transfer {
  MPI_Request request = MPI_REQUEST_NULL;
  std::size_t peer = 0;
  std::size_t place = 0;  // among those under way
};

}  // namespace detail

}  // namespace mpi

}  // namespace dist
