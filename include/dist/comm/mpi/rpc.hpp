#pragma once

#include <dist/comm/mpi/rpc/channel.hpp>
#include <dist/comm/mpi/rpc/server.hpp>
#include <dist/core/config.hpp>

namespace dist {

/// Calls between the processes that mpirun or srun has started, over MPI: through memory within a machine, and over its
/// network between machines. An rpc::Transport. Addresses are ranks (mpi::endpoint_of_rank, MpiRolesResolver).
///
/// The processes are those of `MPI_COMM_WORLD`. All of them make their first server or channel together; that starts MPI where
/// the program has not. A program that starts it itself asks for MPI_THREAD_MULTIPLE.
///
/// One that ends before all have met is for the launcher to notice, which ends the job: nobody knows it yet. Where the launcher
/// was told to go on (mpirun --enable-recovery), the others wait for three minutes.
///
/// A process that is lost is lost for good: every call to it fails from then on, and names its rank. Processes of this
/// machine that end are noticed at once, others when they have been silent: a server is asked for signs of life as long as a
/// channel to it is ready. MPI cannot give back memory of which a process was about to read when it stopped: this process then
/// ends, with the error.
struct Mpi {
  static constexpr bool loses_for_good = true;
  static constexpr bool shares_memory = true;

  using Server = mpi::RpcServer;
  using Channel = mpi::RpcChannel;
  using Exchange = mpi::RpcExchange;
  using Call = mpi::RpcCall;
  using Reply = mpi::RpcReply;
};

static_assert(detail::holds<rpc::Transport<Mpi>> && detail::holds<rpc::LosesForGood<Mpi>> &&
              detail::holds<rpc::SharesMemory<Mpi>>);

}  // namespace dist
