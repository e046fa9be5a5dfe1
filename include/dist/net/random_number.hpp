#pragma once

#include <cstdint>

#include <dist/core/config.hpp>

namespace dist::net {

/// A number that is not 0 and that nobody else draws, of the system's random bytes. Throws RendezvousError.
[[nodiscard]] std::uint64_t random_number();

}  // namespace dist::net

#ifndef DIST_COMPILED
#include <dist/net/random_number.ipp>
#endif
