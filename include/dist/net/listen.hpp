#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>

#include <dist/core/log.hpp>
#include <dist/io/file.hpp>
#include <dist/net/deadline.hpp>
#include <dist/net/endpoint.hpp>
#include <dist/net/socket_address.hpp>

namespace dist::net {

namespace detail {

inline constinit dist::detail::Warning open_to_all{};

/// Returns an empty socket, with errno set, if it cannot listen at `address`.
[[nodiscard, gnu::cold]] inline io::Descriptor try_to_listen(const SocketAddress& address) {
  io::Descriptor socket{::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  const int on = 1, off = 0;
  if (socket && address.family() == AF_INET6)  // :: includes IPv4's 0.0.0.0
    setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (socket && setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
      bind(socket.get(), address.get(), address.size) == 0 && listen(socket.get(), 128) == 0)
    return socket;
  const int problem = errno;
  socket.reset();
  errno = problem;
  return socket;
}

}  // namespace detail

/// A port that other programs cannot bind while this object lives.
struct ReservedPort {
  io::Descriptor socket;     ///< has SO_REUSEADDR and does not listen, so a server can listen at the port
  std::uint16_t number = 0;  ///< of the port
};

/// Reserves a port on all IPv4 interfaces. Throws RendezvousError if none is free.
[[nodiscard]] inline ReservedPort reserve_port() {
  ReservedPort port{io::Descriptor{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)}};
  const int on = 1;
  sockaddr_in all{};
  all.sin_family = AF_INET;
  if (!port.socket || setsockopt(port.socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(port.socket.get(), reinterpret_cast<const sockaddr*>(&all), sizeof all) != 0)
    throw RendezvousError("This machine has no free port", system_text(errno),
                          "End processes that hold ports (ss -ltnp shows them)");
  port.number = own_address(port.socket.get()).port();
  return port;
}

/// Settings of `open_at` and `listen_at`.
struct ListenOptions {
  bool peers_elsewhere = false;              ///< other tasks are on other hosts, so a loopback address is an error
  Milliseconds port_in_use{5'000};           ///< for a previous process to release the port
  Milliseconds name_unknown{120'000};        ///< for this task's name to resolve, and this machine to get its address
  Milliseconds patience = default_patience;  ///< before stderr reports the wait
  bool widen_loopback = false;               ///< listen on all interfaces instead of rejecting a loopback address
  bool authenticated = true;                 ///< peers have a secret or a certificate
  /// Suggestion in the error if another process holds the port.
  const char* in_use_advice =
      "If two processes were started with the same index, give each its own; otherwise end the process that holds the "
      "port (ss -ltnp shows it), or list another port";
};

/// Opens a task's own address only, never all interfaces. `open(address)` returns the listening object, or a false
/// value with errno set. Retries for a while if the name does not resolve, or still resolves to a previous machine, or
/// the port is in use. Throws RendezvousError.
template <class Open>
[[nodiscard]] auto open_at(const Endpoint& own, const ListenOptions& options, Open open) {
  port_number(own);
  const Deadline port_deadline = Deadline::in(options.port_in_use);
  const Deadline name_deadline = Deadline::in(options.name_unknown);
  const Deadline said_at = Deadline::in(options.patience);
  bool said = false;
  for (;;) {
    const Resolved resolved = resolve(own);
    std::string why = resolved.problem;
    int problem = 0;
    for (const SocketAddress& address : resolved.addresses) {
      if (address.is_any())
        throw RendezvousError(concat("This task's address ", to_string(own), " stands for all interfaces"),
                              "it would be open to every network of this machine",
                              "List the address by which the other tasks reach this one");
      const bool unreachable = options.peers_elsewhere && address.is_loopback();
      if (unreachable && !options.widen_loopback)
        throw RendezvousError(
            concat("This task's address ", to_string(own), " is reachable only from this machine"),
            concat(quoted(own.host), " resolves to ", to_string(address), " here, but other tasks are on other hosts"),
            names_loopback(own.host) ? "List a network address of this machine"
                                     : "Map the name to its network address in /etc/hosts, or list that address");
      auto opened = open(unreachable ? address.on_all_interfaces() : address);
      if (opened && !options.authenticated && (unreachable || !address.is_loopback()))
        detail::open_to_all.emit(concat("this task listens at ",
                                        unreachable ? "all network interfaces" : to_string(own),
                                        " without a secret or TLS: any process that reaches it can join the job. Set "
                                        "DIST_JOB_SECRET for all tasks. DIST_WARNINGS=0 silences this."));
      if (opened) return opened;
      if (problem == EADDRINUSE) continue;
      problem = errno;
      why = concat(to_string(address), ": ", system_text(problem));
    }
    const bool may_come = problem == 0 || problem == EADDRNOTAVAIL;
    const bool wait = may_come ? !name_deadline.passed() : problem == EADDRINUSE && !port_deadline.passed();
    if (!wait) {
      const char* suggestion = "Check the name, or list the address itself";
      if (problem == EADDRINUSE)
        suggestion = options.in_use_advice;
      else if (problem == EADDRNOTAVAIL)
        suggestion =
            "The address does not belong to this machine: check that this process has the right index, and that its "
            "name resolves to an address of a local interface (ip address)";
      else if (problem != 0)
        suggestion = "List a port above 1023 that this user may open";
      throw RendezvousError(concat("This task cannot listen at its own address ", to_string(own)), why, suggestion);
    }
    if (!said && said_at.passed()) {
      said = true;
      log_line(concat("this task cannot listen at its own address ", to_string(own), " yet (", why, "); trying up to ",
                      may_come ? options.name_unknown : options.port_in_use));
    }
    poll(nullptr, 0, 50);
  }
}

/// Opens a listening socket like `open_at`.
[[nodiscard]] inline io::Descriptor listen_at(const Endpoint& own, const ListenOptions& options) {
  return open_at(own, options, detail::try_to_listen);
}

}  // namespace dist::net
