#pragma once

#include <span>
#include <string_view>

#include <dist/comm/health/peer_health.hpp>
#include <dist/comm/health/timeout.hpp>
#include <dist/comm/mpi/api.hpp>
#include <dist/comm/mpi/wait.hpp>
#include <dist/core/duration.hpp>
#include <dist/core/error.hpp>
#include <dist/device/slow_wait.hpp>

namespace dist::mpi {

DIST_INLINE_MPI void wait(std::span<MPI_Request> requests, std::string_view what, std::chrono::nanoseconds timeout,
                          PeerHealth* health) {
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
