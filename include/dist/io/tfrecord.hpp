/// TFRecord files: a sequence of records. Each record is its length (64 bits, little-endian), the masked CRC-32C of the
/// length, the bytes, and the masked CRC-32C of the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <dist/core/algorithms.hpp>
#include <dist/core/aligned_buffer.hpp>
#include <dist/core/error.hpp>
#include <dist/io/byte_source.hpp>
#include <dist/io/crc32c.hpp>
#include <dist/io/little_endian.hpp>

namespace dist::io {

/// The default limit on the bytes of a record.
inline constexpr std::size_t tfrecord_default_max_bytes = std::size_t{1} << 30;

namespace detail {

/// Masks a checksum for storage (rotated and offset), because checksums of data with checksums would be weaker.
[[nodiscard]] constexpr std::uint32_t masked_crc(std::uint32_t checksum) noexcept {
  return ((checksum >> 15) | (checksum << 17)) + 0xA282EAD8U;
}

}  // namespace detail

/// The records of a source, one after the other.
template <ByteSource Source>
class TfRecordReader {
 public:
  /// A record with more than `max_bytes` bytes is an error.
  explicit TfRecordReader(Source source, std::size_t max_bytes = tfrecord_default_max_bytes)
      : source_(std::move(source)), buffer_(std::size_t{1} << 16), max_bytes_(max_bytes) {}

  /// Assigns the next record, reusing its memory, and returns true, or returns false at the end.
  ///
  /// Throws FileError, with the file, the record and its offset, if the source ends inside a record, if a checksum does
  /// not match, or if a record has more than `max_bytes` bytes. Memory use is at most about three times the bytes read.
  [[nodiscard]] bool next(std::string& record) {
    std::byte header[length_size + checksum_size];
    const std::size_t found = take(header);
    if (found == 0) return false;
    if (found < sizeof header) truncated("its header", found, sizeof header);
    if (masked({header, length_size}) != load_little_endian<std::uint32_t>(header + length_size)) refuse_length(header);
    const auto length = load_little_endian<std::uint64_t>(header);
    if (length > max_bytes_)
      throw FileError(name(), concat("has a record that is too long: ", place()),
                      concat(length, " bytes, at most ", max_bytes_, " are read"),
                      "Raise max_bytes if the file is sound");

    take_bytes(record, static_cast<std::size_t>(length));
    const auto bytes = std::as_bytes(std::span<const char>{record.data(), record.size()});
    std::byte checksum[checksum_size];
    const std::size_t rest = take(checksum);
    if (rest < sizeof checksum) truncated("its checksum", rest, sizeof checksum);
    if (masked(bytes) != load_little_endian<std::uint32_t>(checksum))
      corrupt("the checksum of its bytes does not match them");
    offset_ += sizeof header + length + sizeof checksum;
    ++records_;
    return true;
  }
  [[nodiscard]] const std::string& name() const noexcept { return source_.name(); }

 private:
  static constexpr std::size_t length_size = 8;
  static constexpr std::size_t checksum_size = 4;

  static std::uint32_t masked(std::span<const std::byte> bytes) { return detail::masked_crc(crc32c(bytes)); }

  [[nodiscard]] std::string place() const { return concat("record ", records_, ", at byte ", offset_); }
  [[noreturn]] void corrupt(std::string_view why) const {
    throw FileError(name(), concat("is corrupt in ", place()), why, "Download or copy the file again");
  }
  [[noreturn]] void truncated(std::string_view part, std::size_t found, std::size_t wanted) const {
    throw FileError(name(), concat("is truncated in ", place()),
                    concat(part, " has ", found, " bytes, expected ", wanted), "Download or copy the file again");
  }
  [[noreturn]] void refuse_length(const std::byte* header) const {
    const bool gzip = header[0] == std::byte{0x1F} && header[1] == std::byte{0x8B};
    if (offset_ > 0) corrupt("the checksum of its length does not match it");
    throw FileError(name(), "is not a TFRecord file", "the checksum of the first record's length does not match it",
                    gzip ? "It is compressed: read it with tfrecord_gz" : "Give a file of TFRecords that is complete");
  }

  /// Reads `length` bytes. Grows the record at most twofold at a time.
  void take_bytes(std::string& record, std::size_t length) {
    constexpr std::size_t first = std::size_t{1} << 16;
    for (std::size_t filled = 0; filled < length;) {
      const std::size_t step = std::min(length - filled, std::max(first, filled));
      record.resize(filled + step);
      const std::size_t count = take(std::as_writable_bytes(std::span<char>{record.data() + filled, step}));
      filled += count;
      if (count < step) truncated("its data", filled, length);
    }
    record.resize(length);
  }

  /// Copies the next bytes to `to`: all that fit, or the remaining ones.
  std::size_t take(std::span<std::byte> to) {
    std::size_t taken = 0;
    while (taken < to.size()) {
      if (rest_.empty() && to.size() - taken >= buffer_.size())
        return taken + read_full(source_, to.subspan(taken));  // directly, because the buffer saves nothing here
      if (rest_.empty()) rest_ = {buffer_.data(), source_.read({buffer_.data(), buffer_.size()})};
      if (rest_.empty()) break;
      const std::size_t count = std::min(rest_.size(), to.size() - taken);
      std::copy_n(rest_.data(), count, to.data() + taken);
      rest_ = rest_.subspan(count);
      taken += count;
    }
    return taken;
  }

  Source source_;
  AlignedBuffer<std::byte> buffer_;
  std::span<const std::byte> rest_;
  std::size_t max_bytes_;
  std::size_t records_ = 0;
  std::uint64_t offset_ = 0;
};

/// Appends `record` to the bytes of a TFRecord file.
inline void append_tfrecord(std::string& file, std::string_view record) {
  const auto append = [&file](auto number) {
    std::byte bytes[sizeof number];
    store_little_endian(number, bytes);
    file.append(reinterpret_cast<const char*>(bytes), sizeof bytes);
    return detail::masked_crc(crc32c(bytes));
  };
  append(append(static_cast<std::uint64_t>(record.size())));
  file.append(record);
  append(detail::masked_crc(crc32c(std::as_bytes(std::span<const char>{record.data(), record.size()}))));
}

}  // namespace dist::io
