#pragma once

#include <cstddef>
#include <limits>
#include <utility>

#include <dist/comm/health/watchdog.hpp>
#include <dist/comm/mpi/api.hpp>
#include <dist/comm/mpi/communicator.hpp>
#include <dist/comm/mpi/environment.hpp>
#include <dist/core/error.hpp>

namespace dist::mpi {

/// The communicator of the members of a group that give the same colour, ranked by key and then by rank. It lives as long
/// as this; what is made of it duplicates it.
class SplitComm {
 public:
  /// A collective call of all members of `group`. Throws InvalidArgument for a colour or key that is no int.
  SplitComm(const Communicator& group, std::size_t color, std::size_t key) {
    constexpr auto largest = static_cast<std::size_t>(std::numeric_limits<int>::max());
    if (color > largest || key > largest)
      throw InvalidArgument("MPI does not know such a colour or key", concat("colour ", color, ", key ", key),
                            concat("Give numbers up to ", largest));
    const CollectiveCall call{.operation = "MPI_Comm_split"};
    const Watchdog::Guard guard{group.watchdog(), call};
    DIST_MPI_CALL(MPI_Comm_split(group.native(), static_cast<int>(color), static_cast<int>(key), &comm_));
  }
  SplitComm(SplitComm&& other) noexcept : comm_(std::exchange(other.comm_, MPI_COMM_NULL)) {}
  SplitComm& operator=(SplitComm&&) = delete;
  ~SplitComm() {
    if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
  }

  [[nodiscard]] CommRef comm() const noexcept { return CommRef{comm_}; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

}  // namespace dist::mpi
