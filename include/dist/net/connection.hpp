#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/io/file.hpp>
#include <dist/net/frame.hpp>

namespace dist::net {

/// A non-blocking stream socket of frames. Buffers unsent data and incomplete frames.
class Connection {
 public:
  Connection() = default;
  /// `socket` must be non-blocking. Rejects frames longer than `longest`.
  Connection(io::Descriptor socket, std::size_t longest) : socket_(std::move(socket)), longest_(longest) {}

  /// The socket, for system calls; -1: none.
  [[nodiscard]] int descriptor() const { return socket_.get(); }
  /// True until `close` or `release`.
  [[nodiscard]] bool open() const { return static_cast<bool>(socket_); }
  /// Closes the socket, without sending buffered data.
  void close() { socket_.reset(); }
  /// Returns the socket. Requires empty buffers.
  [[nodiscard]] io::Descriptor release() { return std::move(socket_); }
  /// Changes the maximum size of received frames.
  void allow(std::size_t longest) { longest_ = longest; }

  /// True if data could not be sent. Received data remains available.
  [[nodiscard]] bool failed() const { return failed_; }
  /// True if no data is buffered for sending.
  [[nodiscard]] bool sent() const { return unsent_from_ == unsent_.size(); }
  /// True if `next` has returned all received data.
  [[nodiscard]] bool received_all() const { return received_.empty(); }
  /// Returns the events to `poll` for.
  [[nodiscard]] pollfd poll_entry() const {
    return {socket_.get(), static_cast<short>(sent() ? POLLIN : POLLIN | POLLOUT), 0};
  }

  /// Sends what the socket accepts now; `flush` sends the rest.
  void send(std::uint16_t type, std::span<const std::byte> record) {
    if (!open() || failed_) return;
    append_frame(unsent_, type, record);
    flush();
  }

  /// Sends buffered data, or drops it if the peer has disconnected; received data remains available.
  void flush() {
    while (open() && !failed_ && !sent()) {
      const ssize_t size =
          ::send(socket_.get(), unsent_.data() + unsent_from_, unsent_.size() - unsent_from_, MSG_NOSIGNAL);
      if (size < 0 && errno == EINTR) continue;
      if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      if (size < 0) {
        failed_ = true;
        break;
      }
      unsent_from_ += static_cast<std::size_t>(size);
    }
    unsent_.clear();
    unsent_from_ = 0;
  }

  /// Receives up to 64 KiB without waiting. Returns false if the peer has closed the connection, or is lost.
  bool receive() {
    if (!open()) return false;
    constexpr std::size_t piece = 65536;
    const std::size_t before = received_.size();
    received_.resize(before + piece);
    ssize_t size = 0;
    do size = recv(socket_.get(), received_.data() + before, piece, MSG_DONTWAIT);
    while (size < 0 && errno == EINTR);
    const bool nothing_yet = size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    received_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    return size > 0 || nothing_yet;
  }

  /// The next complete frame, if any. Throws FrameError.
  [[nodiscard]] std::optional<Frame> next() {
    std::size_t used = 0;
    std::optional<Frame> frame = parse_frame(received_, longest_, used);
    received_.erase(received_.begin(), received_.begin() + static_cast<std::ptrdiff_t>(used));
    return frame;
  }

 private:
  io::Descriptor socket_;
  std::size_t longest_ = 0;
  std::vector<std::byte> received_;
  std::vector<std::byte> unsent_;
  std::size_t unsent_from_ = 0;
  bool failed_ = false;
};

}  // namespace dist::net
