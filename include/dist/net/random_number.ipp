#pragma once

#include <sys/random.h>
#include <sys/types.h>

#include <dist/net/error.hpp>
#include <dist/net/random_number.hpp>

namespace dist::net {

DIST_INLINE std::uint64_t random_number() {
  std::uint64_t number = 0;
  while (number == 0)
    if (getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number))
      throw RendezvousError("The system gives no random bytes", system_text(), "Check getrandom(2)");
  return number;
}

}  // namespace dist::net
