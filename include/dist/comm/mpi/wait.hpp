#pragma once

#include <sched.h>

#include <cstdint>
#include <span>
#include <string_view>

#include <dist/comm/mpi/api.hpp>
#include <dist/core/config.hpp>
#include <dist/core/duration.hpp>
#include <dist/device/slow_wait.hpp>
#include <dist/device/wait.hpp>

namespace dist {
class PeerHealth;
}

namespace dist::mpi {

namespace detail {

/// How often a waiting process looks before it begins to let others run: for some hundred microseconds where it has a
/// core of its own, because rescheduling takes longer than what it waits for; not for long where a peer may need
/// this very core.
inline constexpr unsigned spins_on_own_core = 4'000;
inline constexpr unsigned spins_on_shared_core = 50;

/// Lets MPI work. Throws MpiError.
[[nodiscard]] inline bool are_done(std::span<MPI_Request> requests) {
  int done = 0;
  DIST_MPI_CALL(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE));
  return done != 0;
}

/// Calls `done()`, which lets MPI work, until it is true. Calls `look()` about every millisecond, and `late()` once the
/// time is up; both end the wait by throwing.
template <class Done, class Look, class Late>
void poll_until(unsigned spins, std::int64_t timeout, Done&& done, Look&& look, Late&& late) {
  constexpr unsigned per_clock = 16;  // looks at the requests for each look at the clock
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

/// Waits until these requests are done. Throws Unavailable when `health`, where given, knows that a peer is lost, and
/// DeadlineExceeded, naming `what`, when the time is up; what the requests use must then stay as it is until the
/// process ends. A timeout of 0 waits as long as it takes.
void wait(std::span<MPI_Request> requests, std::string_view what, std::chrono::nanoseconds timeout,
          PeerHealth* health = nullptr);

}  // namespace dist::mpi

#ifndef DIST_COMPILED_MPI
#include <dist/comm/mpi/wait.ipp>
#endif
