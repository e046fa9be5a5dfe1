#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <dist/comm/communicator.hpp>  // CollectiveChecks
#include <dist/comm/mpi/api.hpp>
#include <dist/core/duration.hpp>

namespace dist {

class PeerHealth;
class Watchdog;

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

struct CommunicatorOptions {
  /// The longest that a member waits for another; 0 waits as long as it takes.
  std::chrono::nanoseconds timeout = std::chrono::minutes{10};
  CollectiveChecks checks = CollectiveChecks::calls;
  PeerHealth* health = nullptr;            ///< asked while waiting; outlives the communicator
  Watchdog* watchdog = nullptr;            ///< looks after calls of MPI that block; outlives the communicator
  std::optional<std::size_t> worker = {};  ///< what messages call this process: its rank among all workers
  std::string host = {};                   ///< what messages call this machine; without: its host name
};

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
