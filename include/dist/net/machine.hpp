#pragma once

#include <string>

#include <dist/core/config.hpp>

namespace dist::net {

struct SocketAddress;

/// What this machine calls itself.
[[nodiscard]] std::string host_name();

/// Equal only for processes of one start of one machine that see the same process numbers, network interfaces and
/// /dev/shm, as MPI takes them to do where it shares memory: those of two containers may not. The kernel's boot id comes first; empty
/// where there is none.
[[nodiscard]] std::string machine_id();

/// The network interface of this machine that has `address`: "eth0". Empty if there is none.
[[nodiscard]] std::string interface_of(const SocketAddress& address);

}  // namespace dist::net

#ifndef DIST_COMPILED
#include <dist/net/machine.ipp>
#endif
