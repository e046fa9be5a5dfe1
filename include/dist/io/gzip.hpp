/// Reads gzip files (RFC 1952) and the deflated data of other formats (RFC 1951). The only header that includes zlib's.
#pragma once

#if !__has_include(<zlib.h>)
#error "<zlib.h> of zlib was not found: install zlib1g-dev, and link dist::gzip (without CMake: -lz)"
#endif

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include <dist/core/aligned_buffer.hpp>
#include <dist/core/error.hpp>
#include <dist/io/byte_source.hpp>

namespace dist::io {

namespace detail {

/// zlib's state, and the compressed bytes that it has not taken yet.
template <ByteSource Source>
class Inflater {
 public:
  /// `window_bits` tells zlib the format, as for its inflateInit2.
  Inflater(Source source, int window_bits) : source_(std::move(source)), input_(std::size_t{1} << 16) {
    if (inflateInit2(&stream_, window_bits) != Z_OK) out_of_memory();
  }
  Inflater(const Inflater&) = delete;  // zlib's state points back at its stream
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  /// Decompresses into the front of `buffer` and returns the number of bytes: maybe 0, though more may follow. Sets
  /// `at_end` where the compressed data end. `part` says for messages what is being decompressed.
  std::size_t inflate_into(std::span<std::byte> buffer, bool& at_end, auto&& part) {
    if (stream_.avail_in == 0) refill();
    constexpr std::size_t most = std::numeric_limits<uInt>::max();
    const std::size_t room = buffer.size() < most ? buffer.size() : most;
    stream_.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream_.avail_out = static_cast<uInt>(room);
    const int status = inflate(&stream_, Z_NO_FLUSH);
    if (status == Z_STREAM_END)
      at_end = true;
    else if (status == Z_BUF_ERROR && ended_)
      throw FileError(name(), "is truncated",
                      concat("the compressed data end inside ", part(), ", after ", consumed_, " bytes"),
                      "Download or copy the file again");
    else if (status == Z_MEM_ERROR)
      out_of_memory();
    else if (status != Z_OK && status != Z_BUF_ERROR)
      throw FileError(name(), "is corrupt",
                      concat("zlib says '", stream_.msg != nullptr ? stream_.msg : zError(status), "' in ", part(),
                             ", near byte ", place()),
                      "Download or copy the file again");
    return room - stream_.avail_out;
  }

  /// The next bytes of the source: `count` of them, or those that are left.
  [[nodiscard]] std::span<const unsigned char> peek(std::size_t count) {
    while (stream_.avail_in < count && !ended_) refill();
    return {stream_.next_in, stream_.avail_in < count ? stream_.avail_in : count};
  }
  /// Leaves out zero bytes.
  void skip_zeros() {
    for (std::span<const unsigned char> next = peek(1); !next.empty() && next[0] == 0; next = peek(1)) {
      ++stream_.next_in;
      --stream_.avail_in;
    }
  }
  /// Prepares for the next compressed data.
  void reset() {
    if (inflateReset(&stream_) != Z_OK) out_of_memory();
  }
  /// How many bytes of the source precede the next one.
  [[nodiscard]] std::size_t place() const { return consumed_ - stream_.avail_in; }
  [[nodiscard]] const std::string& name() const noexcept { return source_.name(); }

 private:
  /// Appends input to what is left of it.
  void refill() {
    const std::size_t left = stream_.avail_in;
    if (left > 0) std::memmove(input_.data(), stream_.next_in, left);
    const std::size_t count = source_.read({input_.data() + left, input_.size() - left});
    ended_ = count == 0;
    consumed_ += count;
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    stream_.avail_in = static_cast<uInt>(left + count);
  }

  [[noreturn]] void out_of_memory() const {
    throw OutOfMemory(concat("No memory to decompress '", name(), "'"), "zlib needs about 45 KiB",
                      "Free memory, or raise the limit of this process");
  }

  Source source_;
  AlignedBuffer<std::byte> input_;
  z_stream stream_{};
  std::size_t consumed_ = 0;
  bool ended_ = false;
};

inline constexpr int largest_window = 15;

}  // namespace detail

/// A ByteSource of what another source holds compressed: one gzip member or several, one after the other.
///
/// Its memory is a fixed buffer and zlib's window, whatever the data claim; a limit on the output is the
/// reader's business: it may stop at any byte. The checksum of a member is checked when its end is read, so only
/// `read` returning 0 proves that all of the data were sound. Zeros after a member are padding, as for gzip and Python. Throws
/// FileError for data that are not gzip, corrupt, truncated, or followed by anything but zeros or another member.
template <ByteSource Source>
class GzipSource {
 public:
  explicit GzipSource(Source source) : inflater_(std::move(source), detail::largest_window + gzip_header_only) {}

  [[nodiscard]] std::size_t read(std::span<std::byte> buffer) {
    std::size_t filled = 0;
    while (filled < buffer.size() && (in_member_ || next_member())) {
      bool at_end = false;
      filled +=
          inflater_.inflate_into(buffer.subspan(filled), at_end, [&] { return concat("gzip member ", members_); });
      in_member_ = !at_end;
    }
    return filled;
  }
  [[nodiscard]] const std::string& name() const noexcept { return inflater_.name(); }

 private:
  static constexpr int gzip_header_only = 16;

  /// Looks for a member at the current place. False at the end of the source.
  bool next_member() {
    constexpr std::size_t magic_size = 2;
    if (members_ > 0) inflater_.skip_zeros();
    const std::span<const unsigned char> magic = inflater_.peek(magic_size);
    if (magic.empty() && members_ > 0) return false;
    if (magic.size() < magic_size || magic[0] != 0x1F || magic[1] != 0x8B) refuse_start(magic);
    if (members_ > 0) inflater_.reset();
    ++members_;
    return true;
  }

  [[noreturn]] void refuse_start(std::span<const unsigned char> start) const {
    if (start.empty()) throw FileError(name(), "is not a gzip file", "it is empty", "Download or copy the file again");
    std::string found;
    for (const unsigned char byte : start) {
      constexpr const char* digits = "0123456789abcdef";
      found += concat(found.empty() ? "" : " ", digits[byte >> 4], digits[byte & 15]);
    }
    if (members_ == 0)
      throw FileError(name(), "is not a gzip file", concat("it starts with the bytes ", found, ", expected 1f 8b"),
                      "Give a file made by gzip, or read it without decompression");
    throw FileError(name(), "has bytes after its compressed data",
                    concat("at byte ", inflater_.place(), ": ", found, ", expected the end, zeros or 1f 8b"),
                    "Download or copy the file again");
  }

  detail::Inflater<Source> inflater_;
  std::size_t members_ = 0;
  bool in_member_ = false;
};

/// A ByteSource of the deflated data (RFC 1951) that another source begins with. It has no checksum of its own. Memory
/// and errors are those of GzipSource.
template <ByteSource Source>
class InflateSource {
 public:
  explicit InflateSource(Source source) : inflater_(std::move(source), -detail::largest_window) {}

  [[nodiscard]] std::size_t read(std::span<std::byte> buffer) {
    std::size_t filled = 0;
    while (filled < buffer.size() && !ended_)
      filled += inflater_.inflate_into(buffer.subspan(filled), ended_, [] { return "deflated data"; });
    return filled;
  }
  [[nodiscard]] const std::string& name() const noexcept { return inflater_.name(); }

 private:
  detail::Inflater<Source> inflater_;
  bool ended_ = false;
};

/// The CRC-32 of gzip and ZIP, of `bytes` appended to those whose checksum is `before`.
[[nodiscard]] inline std::uint32_t crc32_of(std::span<const std::byte> bytes, std::uint32_t before = 0) {
  if (bytes.empty()) return before;  // zlib gives its initial value for a null pointer
  return static_cast<std::uint32_t>(::crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace dist::io
