#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <dist/comm/health/peer_health.hpp>  // ProcessWatch
#include <dist/io/file.hpp>
#include <dist/net/error.hpp>

namespace dist::detail {

/// Throws RendezvousError if `path` is too long for a local socket.
[[nodiscard]] inline sockaddr_un door_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    throw RendezvousError("The path of the folder for temporary files is too long",
                          concat("'", path, "' does not fit into ", sizeof address.sun_path - 1, " bytes"),
                          "Set TMPDIR to a shorter path");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

/// A local socket at which ranks identify their processes, so that their server can kill one that a signal has stopped.
/// Over a lifeline, a rank could claim any process ID; here the system reports it, and only this user can access the
/// folder.
class NodeSocket {
 public:
  /// Listens at `path`. Throws RendezvousError.
  explicit NodeSocket(const std::string& path)
      : listening_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    const sockaddr_un address = door_address(path);
    if (!listening_ || bind(listening_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        listen(listening_.get(), 1024) != 0)
      throw RendezvousError(concat("The server of this node cannot listen at '", path, "'"), net::system_text(),
                            "Check the folder for temporary files, and ulimit -n");
  }

  /// Identifies this process as `rank` at the socket `path`. Keep the returned connection open while the rank lives.
  /// Throws RendezvousError.
  [[nodiscard]] static io::Descriptor show(const std::string& path, std::size_t rank) {
    const sockaddr_un address = door_address(path);
    io::Descriptor visit{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    const std::uint64_t number = rank;
    if (!visit || connect(visit.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        send(visit.get(), &number, sizeof number, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof number))
      throw RendezvousError(concat("Worker ", rank, " cannot reach the server of its node at '", path, "'"),
                            net::system_text(), "Start the job again; check ulimit -n");
    return visit;
  }

  void add_entries(std::vector<pollfd>& entries) const {
    entries.push_back({listening_.get(), POLLIN, 0});
    for (const Visitor& visitor : visitors_) entries.push_back({visitor.connection.get(), POLLIN, 0});
  }

  /// Accepts connected ranks.
  void advance() {
    for (;;) {
      io::Descriptor connection{accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
      if (!connection) break;
      ucred who{};
      socklen_t size = sizeof who;
      if (getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 || who.pid <= 0) continue;
      Visitor visitor{std::move(connection), ProcessWatch{who.pid}};
      // While the other end is open, the process exists, and its ID is not reused.
      pollfd entry{visitor.connection.get(), POLLRDHUP, 0};
      if (poll(&entry, 1, 0) == 0) visitors_.push_back(std::move(visitor));
    }
    for (auto visitor = visitors_.begin(); visitor != visitors_.end();) {
      std::uint64_t number = 0;
      const ssize_t size = recv(visitor->connection.get(), &number, sizeof number, MSG_DONTWAIT);
      const bool waits = size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
      if (size == static_cast<ssize_t>(sizeof number))
        ranks_.push_back({static_cast<std::size_t>(number), std::move(visitor->process)});
      visitor = waits ? visitor + 1 : visitors_.erase(visitor);
    }
  }

  /// True if a signal has stopped this rank's process.
  [[nodiscard]] bool is_stopped(std::size_t rank) {
    bool stopped = false;
    for (Rank& known : ranks_) stopped = stopped || (known.rank == rank && known.process.stopped());
    return stopped;
  }
  /// Kills this rank's process, if it has connected and still runs.
  void end(std::size_t rank) {
    for (Rank& known : ranks_)
      if (known.rank == rank) known.process.send(SIGKILL);
  }

 private:
  struct Visitor {
    io::Descriptor connection;
    ProcessWatch process;
  };
  struct Rank {
    std::size_t rank;
    ProcessWatch process;
  };

  io::Descriptor listening_;
  std::vector<Visitor> visitors_;
  std::vector<Rank> ranks_;
};

}  // namespace dist::detail
