#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/text.hpp>
#include <dist/io/crc32c.hpp>
#include <dist/io/little_endian.hpp>
#include <dist/net/error.hpp>

namespace dist::net {

/// One message.
struct Frame {
  std::uint16_t type = 0;          ///< chosen by the protocol
  std::vector<std::byte> payload;  ///< content, without the header
};

/// The size of a frame's header. On the wire: magic number (4 bytes), version (2), type (2), length of the payload (4),
/// CRC-32C of the preceding bytes and the payload (4), payload; all little-endian.
inline constexpr std::size_t frame_header_size = 16;
/// The first four bytes of a frame: "DIST".
inline constexpr std::uint32_t frame_magic = 0x54534944;
/// The version of the format of frames.
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

/// Parses the frame at the front of `bytes`, and sets `used` to its size; empty while it is incomplete. Does not
/// allocate memory for missing bytes. Throws FrameError for other or damaged data, and lengths above `longest`.
[[nodiscard]] inline std::optional<Frame> parse_frame(std::span<const std::byte> bytes, std::size_t longest,
                                                      std::size_t& used) {
  used = 0;
  if (bytes.size() >= 4 && io::load_little_endian<std::uint32_t>(bytes.data()) != frame_magic)
    throw FrameError("A peer uses another protocol", "its bytes do not begin with this library's mark",
                     "Check that no other program uses the ports of the job");
  if (bytes.size() < frame_header_size) return std::nullopt;
  const auto version = io::load_little_endian<std::uint16_t>(bytes.data() + 4);
  if (version != frame_version)
    throw FrameError("A peer has another version of this library",
                     concat("its protocol is number ", version, ", ours ", frame_version),
                     "Build all processes of the job from one version");
  const auto length = io::load_little_endian<std::uint32_t>(bytes.data() + 8);
  if (length > longest)
    throw FrameError("A peer announces a frame that is too long", concat(length, " bytes, the limit is ", longest),
                     "Check that no other program uses the ports of the job");
  if (bytes.size() < frame_header_size + length) return std::nullopt;
  const std::span<const std::byte> payload = bytes.subspan(frame_header_size, length);
  if (io::crc32c(payload, io::crc32c(bytes.first(12))) != io::load_little_endian<std::uint32_t>(bytes.data() + 12))
    throw FrameError("A peer's message is damaged", "its CRC-32C differs", "Start the job again");
  used = frame_header_size + length;
  return Frame{io::load_little_endian<std::uint16_t>(bytes.data() + 6), {payload.begin(), payload.end()}};
}

/// Writes numbers in little-endian order, and texts after their lengths.
class RecordWriter {
 public:
  /// Adds a number of the size of `T`.
  template <std::unsigned_integral T>
  RecordWriter& number(T value) {
    bytes_.resize(bytes_.size() + sizeof(T));
    io::store_little_endian(value, bytes_.data() + bytes_.size() - sizeof(T));
    return *this;
  }
  /// Adds the number of bytes as 32 bits, then the bytes.
  RecordWriter& bytes(std::span<const std::byte> content) {
    number(static_cast<std::uint32_t>(content.size()));
    bytes_.insert(bytes_.end(), content.begin(), content.end());
    return *this;
  }
  /// Adds a text like bytes.
  RecordWriter& string(std::string_view content) { return bytes(std::as_bytes(std::span{content})); }

  /// The bytes that were added, valid until the next addition.
  [[nodiscard]] std::span<const std::byte> content() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

/// Reads a record. Throws FrameError if it is too short or has a text longer than allowed.
class RecordReader {
 public:
  /// `record` must outlive the reader.
  explicit RecordReader(std::span<const std::byte> record) : rest_(record) {}

  /// Reads a number of the size of `T`.
  template <std::unsigned_integral T>
  [[nodiscard]] T number() {
    return io::load_little_endian<T>(take(sizeof(T)).data());
  }
  /// Reads bytes: a view of the record.
  [[nodiscard]] std::span<const std::byte> bytes() { return take(number<std::uint32_t>()); }
  /// Reads a text of at most `longest` bytes.
  [[nodiscard]] std::string string(std::size_t longest = 4096) {
    const std::span<const std::byte> content = bytes();
    if (content.size() > longest)
      throw FrameError("A record has a text that is too long",
                       dist::concat(content.size(), " bytes, the limit is ", longest),
                       "Something other than a process of this job wrote it");
    std::string result(content.size(), '\0');
    if (!content.empty()) std::memcpy(result.data(), content.data(), content.size());
    return result;
  }
  /// True if everything has been read.
  [[nodiscard]] bool empty() const { return rest_.empty(); }
  /// Throws FrameError unless everything has been read.
  void expect_end() const {
    if (!empty())
      throw FrameError("A record is longer than its content", dist::concat(rest_.size(), " bytes are left"),
                       "Run the same version in all processes of the job");
  }

 private:
  std::span<const std::byte> take(std::size_t size) {
    if (size > rest_.size())
      throw FrameError("A record ends early", dist::concat(size, " bytes were expected, ", rest_.size(), " are left"),
                       "Run the same version in all processes of the job");
    return std::exchange(rest_, rest_.subspan(size)).first(size);
  }

  std::span<const std::byte> rest_;
};

}  // namespace dist::net
