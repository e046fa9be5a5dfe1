#pragma once

#include <string>

#include <dist/core/config.hpp>

namespace dist::net {

struct SocketAddress;

/// What this machine calls itself.
[[nodiscard]] std::string host_name();

/// Equal only for processes of one start of one machine that see the same process numbers, network interfaces and
/// /dev/shm, as MPI assumes where it shares memory; processes of two containers may differ. The kernel's boot id comes
/// first; empty if the kernel does not give one.
[[nodiscard]] std::string machine_id();

/// The network interface of this machine that has `address`: "eth0". Empty if no interface has it.
[[nodiscard]] std::string interface_of(const SocketAddress& address);

}  // namespace dist::net

#ifndef DIST_COMPILED
#include <dist/net/machine.ipp>
#endif
