#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <dist/core/text.hpp>
#include <dist/io/crc32c.hpp>
#include <dist/io/little_endian.hpp>
#include <dist/net/error.hpp>

namespace dist::net {

/// One message: what it is, and its record.
struct Frame {
  std::uint16_t type = 0;
  std::vector<std::byte> payload;
};

/// A frame on the wire: magic number (4 bytes), version (2), type (2), length of the payload (4), CRC-32C of all this
/// and the payload (4), payload; all in little-endian order.
inline constexpr std::size_t frame_header_size = 16;
inline constexpr std::uint32_t frame_magic = 0x54534944;  // "DIST"
inline constexpr std::uint16_t frame_version = 1;

/// Appends a frame to `out`.
inline void append_frame(std::vector<std::byte>& out, std::uint16_t type, std::span<const std::byte> payload) {
  std::array<std::byte, frame_header_size> header;
  io::store_little_endian(frame_magic, header.data());
  io::store_little_endian(frame_version, header.data() + 4);
  io::store_little_endian(type, header.data() + 6);
  io::store_little_endian(static_cast<std::uint32_t>(payload.size()), header.data() + 8);
  const std::uint32_t checksum = io::crc32c(payload, io::crc32c(std::span{header}.first(12)));
  io::store_little_endian(checksum, header.data() + 12);
  out.insert(out.end(), header.begin(), header.end());
  out.insert(out.end(), payload.begin(), payload.end());
}

/// The frame at the front of `bytes`, of which `used` bytes are taken; nothing while it is incomplete. Reserves no
/// memory for what has not come. Throws FrameError for what is no frame, is damaged, or announces more than `longest`
/// bytes.
[[nodiscard]] inline std::optional<Frame> parse_frame(std::span<const std::byte> bytes, std::size_t longest,
                                                      std::size_t& used) {
  used = 0;
  if (bytes.size() >= 4 && io::load_little_endian<std::uint32_t>(bytes.data()) != frame_magic)
    throw FrameError("A peer speaks another protocol", "its bytes do not begin with this library's mark",
                     "Check that no other program uses the ports of the job");
  if (bytes.size() < frame_header_size) return std::nullopt;
  const auto version = io::load_little_endian<std::uint16_t>(bytes.data() + 4);
  if (version != frame_version)
    throw FrameError("A peer has another version of this library",
                     concat("its protocol is number ", version, ", ours ", frame_version),
                     "Build all processes of the job from one version");
  const auto length = io::load_little_endian<std::uint32_t>(bytes.data() + 8);
  if (length > longest)
    throw FrameError("A peer announces too much", concat(length, " bytes, allowed are ", longest),
                     "Check that no other program uses the ports of the job");
  if (bytes.size() < frame_header_size + length) return std::nullopt;
  const std::span<const std::byte> payload = bytes.subspan(frame_header_size, length);
  if (io::crc32c(payload, io::crc32c(bytes.first(12))) != io::load_little_endian<std::uint32_t>(bytes.data() + 12))
    throw FrameError("A peer's message is damaged", "its CRC-32C differs", "Start the job again");
  used = frame_header_size + length;
  return Frame{io::load_little_endian<std::uint16_t>(bytes.data() + 6), {payload.begin(), payload.end()}};
}

}  // namespace dist::net
