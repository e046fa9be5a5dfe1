#pragma once

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <dist/io/file.hpp>
#include <dist/net/endpoint.hpp>
#include <dist/net/listen.hpp>

namespace bench {

/// Round trips over a plain TCP socket, as a baseline for transports over TCP.
class TcpPeer {
 public:
  /// Connects to a process that runs `serve`, or will soon.
  explicit TcpPeer(const dist::net::Endpoint& server, std::size_t longest) : memory_(longest) {
    const dist::net::SocketAddress address = dist::net::resolve(server).addresses.front();
    for (int attempt = 0; attempt < 5000; ++attempt) {
      socket_ = ::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
      without_delay(socket_);
      if (connect(socket_, address.get(), address.size) == 0) return;
      close(socket_);
      usleep(1000);
    }
    must(false, "connect");
  }
  TcpPeer(const TcpPeer&) = delete;
  TcpPeer& operator=(const TcpPeer&) = delete;
  ~TcpPeer() { close(socket_); }

  /// Sends `there` bytes, and waits for `back` bytes.
  void exchange(std::uint64_t there, std::uint64_t back) {
    const Head head{there, back};
    send_all(socket_, &head, sizeof head);
    send_all(socket_, memory_.data(), there);
    must(receive_all(socket_, memory_.data(), back), "recv");
  }

  /// The server for one client. Returns when the client closes its socket.
  static void serve(const dist::net::Endpoint& own, std::size_t longest) {
    const dist::io::Descriptor listening = dist::net::listen_at(own, {});
    int socket = -1;
    while ((socket = accept(listening.get(), nullptr, nullptr)) < 0) usleep(1000);
    without_delay(socket);
    std::vector<std::byte> memory(longest);
    for (Head head{}; receive_all(socket, &head, sizeof head) && receive_all(socket, memory.data(), head.there);)
      send_all(socket, memory.data(), head.back);
    close(socket);
  }

 private:
  struct Head {
    std::uint64_t there, back;
  };

  static void must(bool holds, const char* what) {
    if (holds) return;
    std::perror(what);
    std::exit(1);
  }
  static void without_delay(int socket) {
    const int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  static void send_all(int socket, const void* bytes, std::size_t size) {
    for (const char* at = static_cast<const char*>(bytes); size > 0;) {
      const ssize_t sent = send(socket, at, size, MSG_NOSIGNAL);
      must(sent > 0, "send");
      at += sent;
      size -= static_cast<std::size_t>(sent);
    }
  }
  static bool receive_all(int socket, void* bytes, std::size_t size) {
    for (char* at = static_cast<char*>(bytes); size > 0;) {
      const ssize_t received = recv(socket, at, size, 0);
      if (received <= 0) return false;
      at += received;
      size -= static_cast<std::size_t>(received);
    }
    return true;
  }

  int socket_ = -1;
  std::vector<std::byte> memory_;
};

}  // namespace bench
