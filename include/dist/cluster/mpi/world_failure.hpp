#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <dist/net/handshake.hpp>

namespace dist::detail {

/// Why a world could not be made. It travels from the server that found it to every process, which throws the same.
struct WorldFailure {
  enum class Kind : std::uint8_t { deadline = 1, rendezvous = 2 };

  Kind kind = Kind::rendezvous;
  net::Refusal text;

  [[nodiscard]] std::vector<std::byte> record() const {
    net::RecordWriter writer;
    writer.number(static_cast<std::uint8_t>(kind)).bytes(net::refusal_record(text));
    return {writer.content().begin(), writer.content().end()};
  }
  /// Throws FrameError.
  [[nodiscard]] static WorldFailure from(std::span<const std::byte> record) {
    net::RecordReader reader{record};
    WorldFailure failure;
    failure.kind = reader.number<std::uint8_t>() == 1 ? Kind::deadline : Kind::rendezvous;
    failure.text = net::refusal_from(reader.bytes());
    reader.expect_end();
    return failure;
  }

  /// Throws DeadlineExceeded or RendezvousError.
  [[noreturn]] void raise() const {
    if (kind == Kind::deadline) throw DeadlineExceeded(text.problem, text.why, text.suggestion);
    throw RendezvousError(text.problem, text.why, text.suggestion);
  }
};

}  // namespace dist::detail
