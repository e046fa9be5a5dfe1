#pragma once

#include <sched.h>

#include <cstdint>
#include <span>
#include <string_view>

#include <dist/comm/health/peer_health.hpp>
#include <dist/comm/health/timeout.hpp>
#include <dist/comm/mpi/api.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/device/slow_wait.hpp>
#include <dist/device/wait.hpp>

namespace dist {
class PeerHealth;
}

namespace dist::mpi {

namespace detail {

/// Spins of a waiting process before it yields: some hundred microseconds on a dedicated core, because rescheduling takes
/// longer than typical waits; fewer if a peer may need the same core.
inline constexpr unsigned spins_on_own_core = 4'000;
inline constexpr unsigned spins_on_shared_core = 50;

/// True if all requests are complete. Lets MPI progress. Throws MpiError.
[[nodiscard]] inline bool are_done(std::span<MPI_Request> requests) {
  int done = 0;
  DIST_MPI_CALL(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE));
  return done != 0;
}

/// Calls `done()`, which lets MPI progress, until it returns true. Calls `look()` about every millisecond, and `late()`
/// after the timeout; both throw to end the wait.
template <class Done, class Look, class Late>
void poll_until(unsigned spins, std::int64_t timeout, Done&& done, Look&& look, Late&& late) {
  constexpr unsigned per_clock = 16;  // per look at the clock
  constexpr std::int64_t millisecond = 1'000'000;
  for (unsigned spin = 0; spin < spins; ++spin)
    if (done()) return;
  const std::int64_t start = dist::detail::monotonic_nanoseconds();
  std::int64_t next_look = start + millisecond;
  SlowWait slow;
  for (;;) {
    for (unsigned spin = 0; spin < per_clock; ++spin) {
      if (done()) return;
      sched_yield();
    }
    const std::int64_t now = dist::detail::monotonic_nanoseconds();
    if (now < next_look) continue;
    next_look = now + millisecond;
    look();
    slow.note_otherwise([] { return "for other workers in MPI"; });
    if (now - start > timeout && !done()) late();
  }
}

}  // namespace detail

/// Waits for requests. Throws Unavailable if `health` reports a lost peer, and DeadlineExceeded, naming `what`, after
/// the timeout (0: without limit). Memory of the requests must then stay valid until the process ends.
inline void wait(std::span<MPI_Request> requests, std::string_view what, std::chrono::nanoseconds timeout,
                 PeerHealth* health = nullptr) {
  detail::poll_until(
      detail::spins_on_shared_core, dist::detail::longest_wait(timeout), [&] { return detail::are_done(requests); },
      [&] {
        if (health != nullptr) health->look();
        SlowWait::note_innermost([&] { return concat("for the other workers in ", what); });
      },
      [&] {
        throw DeadlineExceeded(concat(what, " did not end in time"),
                               concat("waited ", timeout, " for the other workers"),
                               "Find out what they wait for, or give a longer timeout");
      });
}

}  // namespace dist::mpi
