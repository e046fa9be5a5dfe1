/// The only file that includes zlib's header.
#pragma once

#include <zlib.h>

#include <cstring>
#include <limits>

#include <dist/core/aligned_buffer.hpp>
#include <dist/core/error.hpp>
#include <dist/io/gzip.hpp>

namespace dist::io {

namespace detail {

/// zlib's state, and the compressed bytes not yet consumed.
class Inflater::State {
 public:
  State(Format format, const std::string& name) : input_(std::size_t{1} << 16) {
    constexpr int largest_window = 15;
    constexpr int gzip_header_only = 16;
    // zlib's encoding of the format.
    const int window_bits = format == Format::gzip ? largest_window + gzip_header_only : -largest_window;
    if (inflateInit2(&stream_, window_bits) != Z_OK) out_of_memory(name);
    is_gzip_ = format == Format::gzip;
  }
  State(const State&) = delete;  // zlib's state points to its stream
  State& operator=(const State&) = delete;
  ~State() { inflateEnd(&stream_); }

  [[nodiscard]] std::size_t read(AnySource source, std::span<std::byte> buffer) {
    std::size_t filled = 0;
    while (filled < buffer.size() && (in_data_ || next_data(source)))
      filled += inflate_into(source, buffer.subspan(filled));
    return filled;
  }

 private:
  /// Decompresses to the beginning of `buffer`. Returns the number of bytes, which may be 0 before the end.
  std::size_t inflate_into(AnySource source, std::span<std::byte> buffer) {
    if (stream_.avail_in == 0) refill(source);
    constexpr std::size_t most = std::numeric_limits<uInt>::max();
    const std::size_t room = buffer.size() < most ? buffer.size() : most;
    stream_.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream_.avail_out = static_cast<uInt>(room);
    const auto part = [&] { return is_gzip_ ? concat("gzip member ", parts_) : std::string("deflated data"); };
    const int status = inflate(&stream_, Z_NO_FLUSH);
    if (status == Z_STREAM_END)
      in_data_ = false;
    else if (status == Z_BUF_ERROR && ended_)
      throw FileError(source.name(), "is truncated",
                      concat("the compressed data end inside ", part(), ", after ", consumed_, " bytes"),
                      "Download or copy the file again");
    else if (status == Z_MEM_ERROR)
      out_of_memory(source.name());
    else if (status != Z_OK && status != Z_BUF_ERROR)
      throw FileError(source.name(), "is corrupt",
                      concat("zlib reports '", stream_.msg != nullptr ? stream_.msg : zError(status), "' in ", part(),
                             ", near byte ", place()),
                      "Download or copy the file again");
    return room - stream_.avail_out;
  }

  /// Searches compressed data at the current position. Returns false at the end of the source.
  bool next_data(AnySource source) {
    if (!is_gzip_) return in_data_ = parts_++ == 0;
    constexpr std::size_t magic_size = 2;
    if (parts_ > 0) skip_zeros(source);
    const std::span<const unsigned char> magic = peek(source, magic_size);
    if (magic.empty() && parts_ > 0) return false;
    if (magic.size() < magic_size || magic[0] != 0x1F || magic[1] != 0x8B) refuse_start(source, magic);
    if (parts_ > 0 && inflateReset(&stream_) != Z_OK) out_of_memory(source.name());
    ++parts_;
    return in_data_ = true;
  }

  [[noreturn]] void refuse_start(AnySource source, std::span<const unsigned char> start) const {
    const std::string& name = source.name();
    if (start.empty()) throw FileError(name, "is not a gzip file", "it is empty", "Download or copy the file again");
    std::string found;
    for (const unsigned char byte : start) {
      constexpr const char* digits = "0123456789abcdef";
      found += concat(found.empty() ? "" : " ", digits[byte >> 4], digits[byte & 15]);
    }
    if (parts_ == 0)
      throw FileError(name, "is not a gzip file", concat("it starts with the bytes ", found, ", expected 1f 8b"),
                      "Give a file made by gzip, or read it without decompression");
    throw FileError(name, "has bytes after its compressed data",
                    concat("at byte ", place(), ": ", found, ", expected the end, zeros or 1f 8b"),
                    "Download or copy the file again");
  }

  /// Returns the next `count` bytes of the source, or the remaining ones.
  [[nodiscard]] std::span<const unsigned char> peek(AnySource source, std::size_t count) {
    while (stream_.avail_in < count && !ended_) refill(source);
    return {stream_.next_in, stream_.avail_in < count ? stream_.avail_in : count};
  }
  void skip_zeros(AnySource source) {
    for (auto next = peek(source, 1); !next.empty() && next[0] == 0; next = peek(source, 1)) {
      ++stream_.next_in;
      --stream_.avail_in;
    }
  }
  /// The offset of the next byte in the source.
  [[nodiscard]] std::size_t place() const { return consumed_ - stream_.avail_in; }

  /// Reads more input after the unconsumed bytes.
  void refill(AnySource source) {
    const std::size_t left = stream_.avail_in;
    if (left > 0) std::memmove(input_.data(), stream_.next_in, left);
    const std::size_t count = source.read({input_.data() + left, input_.size() - left});
    ended_ = count == 0;
    consumed_ += count;
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    stream_.avail_in = static_cast<uInt>(left + count);
  }

  [[noreturn]] static void out_of_memory(const std::string& name) {
    throw OutOfMemory(concat("No memory to decompress '", name, "'"), "zlib needs about 45 KiB",
                      "Free memory, or raise the limit of this process");
  }

  AlignedBuffer<std::byte> input_;
  z_stream stream_{};
  std::size_t consumed_ = 0;
  std::size_t parts_ = 0;  // gzip members or deflate data started
  bool is_gzip_ = false;
  bool in_data_ = false;
  bool ended_ = false;
};

DIST_INLINE Inflater::Inflater(Format format, const std::string& name)
    : state_(std::make_unique<State>(format, name)) {}
DIST_INLINE_DEFAULT Inflater::Inflater(Inflater&&) noexcept = default;
DIST_INLINE_DEFAULT Inflater& Inflater::operator=(Inflater&&) noexcept = default;
DIST_INLINE_DEFAULT Inflater::~Inflater() = default;

DIST_INLINE std::size_t Inflater::read(AnySource source, std::span<std::byte> buffer) {
  return state_->read(source, buffer);
}

}  // namespace detail

DIST_INLINE std::uint32_t crc32_of(std::span<const std::byte> bytes, std::uint32_t before) {
  if (bytes.empty()) return before;  // for a null pointer, zlib returns its initial value
  return static_cast<std::uint32_t>(::crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace dist::io
