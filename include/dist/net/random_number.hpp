#pragma once

#include <sys/random.h>
#include <sys/types.h>

#include <cstdint>

#include <dist/net/error.hpp>

namespace dist::net {

/// A number that is not 0 and that nobody else draws, of the system's random bytes. Throws RendezvousError.
[[nodiscard]] inline std::uint64_t random_number() {
  std::uint64_t number = 0;
  while (number == 0)
    if (getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number))
      throw RendezvousError("The system gives no random bytes", system_text(), "Check getrandom(2)");
  return number;
}

}  // namespace dist::net
