#pragma once

#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include <dist/comm/health/peer_health.hpp>
#include <dist/comm/mpi/api.hpp>
#include <dist/comm/mpi/comm_ref.hpp>
#include <dist/comm/mpi/environment.hpp>
#include <dist/comm/mpi/wait.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/text.hpp>

namespace dist::mpi::detail {

/// A member's information for the others.
struct MemberIdentity {
  std::uint64_t worker = 0;
  std::uint64_t process_space = 0;
  std::int64_t pid = 0;
  std::array<char, 256> host{};
};

/// Lets `health` monitor the processes of members on this machine.
inline void watch_near(const std::vector<MemberIdentity>& members, std::size_t rank, PeerHealth& health) {
  const MemberIdentity& me = members[rank];
  for (std::size_t peer = 0; peer < members.size(); ++peer)
    if (peer != rank && me.process_space != 0 && members[peer].process_space == me.process_space)
      health.watch_process(members[peer].worker, members[peer].host.data(), static_cast<pid_t>(members[peer].pid));
}

/// A new group: its communicator, and its members by rank.
struct Handshake {
  MPI_Comm comm = MPI_COMM_NULL;
  std::vector<MemberIdentity> members;
  std::vector<MPI_Request> requests = {};  // for transfers in progress

  /// The number of members on this machine, including this one.
  [[nodiscard]] std::size_t count_near(std::size_t rank) const noexcept {
    return static_cast<std::size_t>(std::count_if(members.begin(), members.end(), [&](const MemberIdentity& member) {
      return member.process_space == members[rank].process_space;
    }));
  }
};

/// Exchanges the members' identities. A collective call. Throws DeadlineExceeded or Unavailable.
[[nodiscard]] inline std::unique_ptr<Handshake> introduce(CommRef comm, const CommunicatorOptions& options) {
  auto made = std::make_unique<Handshake>();
  try {
    const std::size_t rank = rank_in(comm.get());
    const std::size_t size = size_of(comm.get());
    made->requests.assign(1, MPI_REQUEST_NULL);
    DIST_MPI_CALL(MPI_Comm_idup(comm.get(), &made->comm, made->requests.data()));
    wait(made->requests, concat("The creation of a group of ", size, " workers"), options.timeout, options.health);
    DIST_MPI_CALL(MPI_Comm_set_errhandler(made->comm, MPI_ERRORS_RETURN));
    made->members.resize(size);
    MemberIdentity& me = made->members[rank];
    me.worker = options.worker.value_or(rank);
    me.process_space = process_space();
    me.pid = getpid();
    if (options.host.empty())
      gethostname(me.host.data(), me.host.size() - 1);
    else
      std::memcpy(me.host.data(), options.host.data(), std::min(options.host.size(), me.host.size() - 1));
    made->requests.clear();
    constexpr int tag = 1;
    // The first messages between two processes establish their connection, which needs both: so every pair exchanges
    // one here.
    for (std::size_t peer = 0; peer < size; ++peer) {
      if (peer == rank) continue;
      DIST_MPI_CALL(MPI_Irecv(&made->members[peer], sizeof(MemberIdentity), MPI_BYTE, static_cast<int>(peer), tag,
                              made->comm, &made->requests.emplace_back(MPI_REQUEST_NULL)));
      DIST_MPI_CALL(MPI_Isend(&me, sizeof(me), MPI_BYTE, static_cast<int>(peer), tag, made->comm,
                              &made->requests.emplace_back(MPI_REQUEST_NULL)));
    }
    wait(made->requests, concat("The exchange of identities between ", size, " workers"), options.timeout,
         options.health);
  } catch (...) {
    // Transfers in progress use this memory.
    static auto& kept_until_the_process_ends = *new std::vector<std::unique_ptr<Handshake>>;
    kept_until_the_process_ends.push_back(std::move(made));
    throw;
  }
  return made;
}

}  // namespace dist::mpi::detail
