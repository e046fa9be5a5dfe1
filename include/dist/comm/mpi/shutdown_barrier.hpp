#pragma once

#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <dist/comm/collective_call.hpp>
#include <dist/comm/health/peer_health.hpp>
#include <dist/comm/health/timeout.hpp>
#include <dist/comm/health/watchdog.hpp>
#include <dist/comm/mpi/api.hpp>
#include <dist/comm/mpi/comm_ref.hpp>
#include <dist/comm/mpi/environment.hpp>
#include <dist/comm/mpi/wait.hpp>
#include <dist/core/algorithms.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/log.hpp>
#include <dist/device/slow_wait.hpp>

namespace dist::mpi {

/// The meeting of all processes of MPI_COMM_WORLD before MPI_Finalize. MPI_Finalize waits for all of them as long as it
/// takes and cannot say for whom; this wait has a deadline and names the missing processes.
///
/// Each process sends every other one a byte, so that each knows which have come.
class ShutdownBarrier {
 public:
  /// The number of a process that is no worker.
  static constexpr std::size_t no_worker = std::numeric_limits<std::size_t>::max();

  /// A collective call of all processes. Messages call this one `name`; `worker` is its number in PeerHealth.
  ShutdownBarrier(std::string_view name, std::size_t worker) {
    DIST_MPI_CALL(MPI_Comm_dup(MPI_COMM_WORLD, &comm_));
    DIST_MPI_CALL(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
    rank_ = detail::rank_in(comm_);
    members_.resize(detail::size_of(comm_));
    Member mine{worker, {}};
    std::copy_n(name.data(), std::min(name.size(), mine.name.size() - 1), mine.name.data());
    DIST_MPI_CALL(MPI_Allgather(&mine, sizeof(Member), MPI_BYTE, members_.data(), sizeof(Member), MPI_BYTE, comm_));
  }
  ShutdownBarrier(const ShutdownBarrier&) = delete;
  ShutdownBarrier& operator=(const ShutdownBarrier&) = delete;
  /// What has not come may still be on its way: the communicator stays for the life of the process.
  ~ShutdownBarrier() = default;

  /// Returns when all have come here. Throws DeadlineExceeded, naming those missing after `timeout` (0 waits as long
  /// as it takes), or Unavailable, where `health` knows that a process is lost. After ten seconds it says for whom it
  /// waits.
  void meet(std::chrono::nanoseconds timeout, PeerHealth& health) {
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
              concat("Not all processes came to the end of the job within ", timeout),
              concat(name(rank_), " has finished and waits for ", missing()),
              "See what they do after their strategy has ended, or give the strategy a longer timeout");
        });
  }

 private:
  static constexpr std::int64_t patience = 10'000'000'000;

  struct Member {
    std::uint64_t worker;
    std::array<char, 288> name;
  };

  [[nodiscard]] std::string_view name(std::size_t rank) const { return members_[rank].name.data(); }

  void start() {
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
  [[nodiscard]] bool is_done() { return detail::are_done(receives_) && detail::are_done(sends_); }

  /// "worker 1 on host east, worker 3 on host west and 12 more".
  [[nodiscard]] std::string missing() {
    constexpr std::size_t most = 8;
    std::string names;
    std::size_t count = 0;
    for (std::size_t peer = 0; peer < members_.size(); ++peer) {
      int done = 0;
      DIST_MPI_CALL(MPI_Test(&receives_[peer], &done, MPI_STATUS_IGNORE));
      if (done == 0 && ++count <= most) names += concat(count == 1 ? "" : ", ", name(peer));
    }
    if (count > most) names += concat(" and ", count - most, " more");
    return count == 0 ? "what is on its way" : names;
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  std::size_t rank_ = 0;
  std::vector<Member> members_;
  std::vector<std::byte> bytes_;
  std::vector<MPI_Request> receives_;
  std::vector<MPI_Request> sends_;
};

/// The end of a process whose MPI this library has started: meets the others, and finalises MPI, which waits for all of
/// them. Where one does not come within `timeout` (0: as long as it takes), or is lost, the process ends here, with the
/// reason, after `before_end()`.
template <class BeforeEnd>
void finalize_together(std::unique_ptr<Environment>& environment, ShutdownBarrier* farewell, PeerHealth& health,
                       std::chrono::nanoseconds timeout, BeforeEnd&& before_end) {
  const auto end = [&](int status, const std::exception& error) {
    log_line(concat("stuck at the end of the process, and ended with status ", status, ": ", error.what()));
    before_end();
    std::fflush(nullptr);
    _exit(status);
  };
  std::fflush(nullptr);  // an end on the way flushes nothing
  try {
    if (farewell != nullptr) farewell->meet(timeout, health);
  } catch (const DeadlineExceeded& error) {
    end(Watchdog::exit_late, error);
  } catch (const std::exception& error) {
    end(Watchdog::exit_lost, error);
  }
  // All have come. A peer that was faster and has ended looks like a lost one: hence the patience.
  Watchdog watchdog{health, timeout, std::chrono::seconds{30}, [&] { before_end(); }};
  const CollectiveCall call{.operation = "MPI_Finalize"};
  const Watchdog::Guard guard{&watchdog, call};
  environment.reset();
}

}  // namespace dist::mpi
