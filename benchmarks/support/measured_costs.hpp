// Measures the constants of the cost model in message_costs.hpp between two processes of this machine.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dist/comm/messages/algorithm_thresholds.hpp>
#include <dist/comm/reduce_block.hpp>
#include <dist/core/reduce_op.hpp>

#include "clock.hpp"

namespace bench {

namespace detail {

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::perror(what);
  std::exit(1);
}
inline void send_all(int socket, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    require(sent > 0, "send");
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
}
/// Returns false if the connection is closed.
inline bool receive_all(int socket, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t received = ::recv(socket, bytes.data(), bytes.size(), 0);
    if (received <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(received));
  }
  return true;
}

/// A connection over the loopback interface to a process that sends back what it receives.
class Echo {
 public:
  explicit Echo(std::size_t most_bytes) : buffer_(most_bytes) {
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    auto* const named = reinterpret_cast<sockaddr*>(&address);
    require(::bind(listener, named, length) == 0 && ::listen(listener, 1) == 0, "listen");
    require(::getsockname(listener, named, &length) == 0, "getsockname");
    child_ = ::fork();
    require(child_ >= 0, "fork");
    socket_ = child_ == 0 ? ::accept(listener, nullptr, nullptr) : ::socket(AF_INET, SOCK_STREAM, 0);
    if (child_ != 0) require(::connect(socket_, named, length) == 0, "connect");
    ::close(listener);
    const int at_once = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof(at_once));
    if (child_ == 0) answer();
  }
  Echo(const Echo&) = delete;
  Echo& operator=(const Echo&) = delete;
  ~Echo() {
    ::close(socket_);
    ::waitpid(child_, nullptr, 0);
  }

  /// Returns the one-way seconds of a message: half of the fastest round trip.
  [[nodiscard]] double seconds(std::uint64_t bytes, int rounds) {
    const std::span<std::byte> message = std::span{buffer_}.first(bytes);
    double fastest = 0;
    for (int round = 0; round < rounds; ++round) {
      const double begin = bench::seconds();
      send_all(socket_, std::as_bytes(std::span{&bytes, 1}));
      send_all(socket_, message);
      require(receive_all(socket_, message), "receive");
      const double took = bench::seconds() - begin;
      fastest = round == 0 ? took : std::min(fastest, took);
    }
    return fastest / 2;
  }

 private:
  [[noreturn]] void answer() {
    std::uint64_t bytes = 0;
    while (receive_all(socket_, std::as_writable_bytes(std::span{&bytes, 1}))) {
      const std::span<std::byte> message = std::span{buffer_}.first(bytes);
      receive_all(socket_, message);
      send_all(socket_, message);
    }
    std::_Exit(0);
  }

  std::vector<std::byte> buffer_;
  pid_t child_ = 0;
  int socket_ = -1;
};

/// Returns the seconds per byte of the fastest of 20 calls.
template <class Call>
double seconds_per_byte(std::size_t bytes, Call&& call) {
  double fastest = 0;
  for (int round = 0; round < 20; ++round) {
    const double begin = bench::seconds();
    call();
    const double took = bench::seconds() - begin;
    fastest = round == 0 ? took : std::min(fastest, took);
  }
  return fastest / static_cast<double>(bytes);
}

}  // namespace detail

/// Measures latency and seconds per byte of TCP messages on the loopback interface, and seconds per byte of reducing
/// and copying arrays that exceed the caches.
[[nodiscard]] inline dist::MessageCosts measured_costs() {
  constexpr std::size_t large = std::size_t{8} << 20;
  dist::MessageCosts costs;
  {
    detail::Echo echo{large};
    costs.latency = echo.seconds(8, 5000);
    costs.per_byte = (echo.seconds(large, 20) - costs.latency) / static_cast<double>(large);
  }
  std::vector<float> sums(8 * large / sizeof(float)), values(sums.size(), 1.0f);
  const std::size_t bytes = sums.size() * sizeof(float);
  costs.per_reduced_byte =
      detail::seconds_per_byte(bytes, [&] { dist::detail::combine(dist::sum, std::span<float>{sums}, values.data()); });
  costs.per_copied_byte = detail::seconds_per_byte(bytes, [&] { std::memcpy(sums.data(), values.data(), bytes); });
  return costs;
}

}  // namespace bench
