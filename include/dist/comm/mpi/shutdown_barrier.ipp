#pragma once

#include <dist/comm/mpi/shutdown_barrier.hpp>
#include <dist/core/config.hpp>

namespace dist::mpi {

DIST_INLINE ShutdownBarrier::ShutdownBarrier(std::string_view name, std::size_t worker) {
  DIST_MPI_CALL(MPI_Comm_dup(MPI_COMM_WORLD, &comm_));
  DIST_MPI_CALL(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
  rank_ = detail::rank_in(comm_);
  members_.resize(detail::size_of(comm_));
  Member mine{worker, {}};
  std::copy_n(name.data(), std::min(name.size(), mine.name.size() - 1), mine.name.data());
  DIST_MPI_CALL(MPI_Allgather(&mine, sizeof(Member), MPI_BYTE, members_.data(), sizeof(Member), MPI_BYTE, comm_));
}

DIST_INLINE void ShutdownBarrier::meet(std::chrono::nanoseconds timeout, PeerHealth& health) {
  if (receives_.empty()) start();
  const std::int64_t start = dist::detail::monotonic_nanoseconds();
  bool said = false;
  detail::poll_until(
      detail::spins_on_shared_core, dist::detail::longest_wait(timeout), [&] { return is_done(); },
      [&] {
        health.look();
        SlowWait::note_innermost([&] { return concat("for ", missing(), " at the end of the process"); });
        if (said || dist::detail::monotonic_nanoseconds() - start < patience) return;
        said = true;
        log_line(concat(name(rank_), " has finished and waits for ", missing(), ", ",
                        timeout.count() == 0 ? "as long as it takes" : concat("up to ", timeout)));
      },
      [&] {
        throw DeadlineExceeded(
            concat("Not all processes reached the end of the job within ", timeout),
            concat(name(rank_), " has finished and waits for ", missing()),
            "Find out what they do after the end of their strategy, or give the strategy a longer timeout");
      });
}

DIST_INLINE void ShutdownBarrier::start() {
  bytes_.resize(2 * members_.size());
  receives_.resize(members_.size(), MPI_REQUEST_NULL);
  sends_.resize(members_.size(), MPI_REQUEST_NULL);
  for (std::size_t peer = 0; peer < members_.size(); ++peer) {
    if (peer == rank_) continue;
    const int number = static_cast<int>(peer);
    DIST_MPI_CALL(MPI_Irecv(&bytes_[2 * peer], 1, MPI_BYTE, number, 0, comm_, &receives_[peer]));
    DIST_MPI_CALL(MPI_Isend(&bytes_[2 * peer + 1], 1, MPI_BYTE, number, 0, comm_, &sends_[peer]));
  }
}

DIST_INLINE std::string ShutdownBarrier::missing() {
  constexpr std::size_t most = 8;
  std::string names;
  std::size_t count = 0;
  for (std::size_t peer = 0; peer < members_.size(); ++peer) {
    int done = 0;
    DIST_MPI_CALL(MPI_Test(&receives_[peer], &done, MPI_STATUS_IGNORE));
    if (done == 0 && ++count <= most) names += concat(count == 1 ? "" : ", ", name(peer));
  }
  if (count > most) names += concat(" and ", count - most, " more");
  return count == 0 ? "messages in transit" : names;
}

}  // namespace dist::mpi
