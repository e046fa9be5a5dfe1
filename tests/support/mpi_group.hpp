// The group of all processes of a test under mpirun, for the suite of policies between processes.
#pragma once

#include <chrono>

#include <dist/comm/mpi/communicator.hpp>

namespace support {

template <class Ops>
class MpiGroup {
 public:
  using Collectives = typename Ops::template On<dist::mpi::Communicator>;
  static constexpr bool every_type = true;

  explicit MpiGroup(std::chrono::nanoseconds timeout)
      : collectives_(dist::mpi::Communicator{dist::mpi::ref(MPI_COMM_WORLD), {.timeout = timeout}}) {}

  [[nodiscard]] const Collectives& collectives() const noexcept { return collectives_; }
  void wait_outside() const { MPI_Barrier(MPI_COMM_WORLD); }

 private:
  Collectives collectives_;
};

}  // namespace support
