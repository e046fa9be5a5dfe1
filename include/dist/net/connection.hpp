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
#include <dist/net/error.hpp>
#include <dist/net/frame.hpp>

namespace dist::net {

/// A stream socket that carries frames and never blocks: what cannot be sent yet is kept, and so is what arrives until
/// a frame is complete.
class Connection {
 public:
  Connection() = default;
  /// `socket` is one that does not block. Frames longer than `longest` are refused.
  Connection(io::Descriptor socket, std::size_t longest) : socket_(std::move(socket)), longest_(longest) {}

  [[nodiscard]] int descriptor() const { return socket_.get(); }
  [[nodiscard]] bool open() const { return static_cast<bool>(socket_); }
  void close() { socket_.reset(); }
  /// Hands the socket out. Call it when nothing is buffered.
  [[nodiscard]] io::Descriptor release() { return std::move(socket_); }
  void allow(std::size_t longest) { longest_ = longest; }

  /// Nothing can be sent any more.
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] bool sent() const { return unsent_from_ == unsent_.size(); }
  /// Nothing has arrived that `next` has not returned.
  [[nodiscard]] bool received_all() const { return received_.empty(); }
  /// What to ask `poll` for.
  [[nodiscard]] pollfd poll_entry() const {
    return {socket_.get(), static_cast<short>(sent() ? POLLIN : POLLIN | POLLOUT), 0};
  }

  /// Sends a frame, as much of it as the socket takes now. `flush` sends the rest.
  void send(std::uint16_t type, std::span<const std::byte> record) {
    if (!open() || failed_) return;
    append_frame(unsent_, type, record);
    flush();
  }

  /// When the peer is gone the rest is dropped. What it had sent before can still be received.
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

  /// Takes up to 64 KiB of what has arrived. False when the peer has closed or is gone.
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

  /// The next whole frame. Throws FrameError.
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
