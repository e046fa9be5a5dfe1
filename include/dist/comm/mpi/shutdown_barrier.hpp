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

/// A barrier of all processes of MPI_COMM_WORLD before MPI_Finalize, which waits without limit and names no
/// processes. This barrier has a deadline and names the missing processes.
///
/// Each process sends a byte to every other one, so that each can tell which ones have arrived.
class ShutdownBarrier {
 public:
  /// The number of a process that is not a worker.
  static constexpr std::size_t no_worker = std::numeric_limits<std::size_t>::max();

  /// A collective call of all processes. `name` is this process's name in messages, `worker` its number in PeerHealth.
  ShutdownBarrier(std::string_view name, std::size_t worker);
  ShutdownBarrier(const ShutdownBarrier&) = delete;
  ShutdownBarrier& operator=(const ShutdownBarrier&) = delete;
  /// Keeps the communicator, because missing bytes may still be in transit.
  ~ShutdownBarrier() = default;

  /// Waits until all processes have called it. Throws DeadlineExceeded, naming the missing processes, after `timeout`
  /// (0: without limit), or Unavailable if `health` reports a lost process. Logs the awaited processes after ten
  /// seconds.
  void meet(std::chrono::nanoseconds timeout, PeerHealth& health);

 private:
  static constexpr std::int64_t patience = 10'000'000'000;

  struct Member {
    std::uint64_t worker;
    std::array<char, 288> name;
  };

  [[nodiscard]] std::string_view name(std::size_t rank) const { return members_[rank].name.data(); }

  void start();
  [[nodiscard]] bool is_done() { return detail::are_done(receives_) && detail::are_done(sends_); }

  /// Text such as "worker 1 on host east, worker 3 on host west and 12 more".
  [[nodiscard]] std::string missing();

  MPI_Comm comm_ = MPI_COMM_NULL;
  std::size_t rank_ = 0;
  std::vector<Member> members_;
  std::vector<std::byte> bytes_;
  std::vector<MPI_Request> receives_;
  std::vector<MPI_Request> sends_;
};

/// Ends a process whose MPI this library has started: waits for the others, and finalises MPI, which waits for all of
/// them. If a process does not arrive within `timeout` (0: without limit) or is lost, logs the reason, calls
/// `before_end()` and exits.
template <class BeforeEnd>
void finalize_together(std::unique_ptr<Environment>& environment, ShutdownBarrier* farewell, PeerHealth& health,
                       std::chrono::nanoseconds timeout, BeforeEnd&& before_end) {
  const auto end = [&](int status, const std::exception& error) {
    log_line(concat("stuck at the end of the process, and ended with status ", status, ": ", error.what()));
    before_end();
    std::fflush(nullptr);
    _exit(status);
  };
  std::fflush(nullptr);  // _exit does not flush
  try {
    if (farewell != nullptr) farewell->meet(timeout, health);
  } catch (const DeadlineExceeded& error) {
    end(Watchdog::exit_late, error);
  } catch (const std::exception& error) {
    end(Watchdog::exit_lost, error);
  }
  // All have arrived. A faster peer that has already exited looks lost, hence the grace period.
  Watchdog watchdog{health, timeout, std::chrono::seconds{30}, [&] { before_end(); }};
  const CollectiveCall call{.operation = "MPI_Finalize"};
  const Watchdog::Guard guard{&watchdog, call};
  environment.reset();
}

}  // namespace dist::mpi

#ifndef DIST_COMPILED
#include <dist/comm/mpi/shutdown_barrier.ipp>
#endif
