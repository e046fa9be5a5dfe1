/// Reads gzip files (RFC 1952). The only header that includes zlib's.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include <dist/core/aligned_buffer.hpp>
#include <dist/core/error.hpp>
#include <dist/io/byte_source.hpp>

namespace dist::io {

/// A ByteSource of what another source holds compressed: one gzip member or several, one after the other.
///
/// Its memory is a fixed buffer and zlib's window, whatever the data claim; a limit on the output is the
/// reader's, who may stop at any byte. The checksum of a member is checked when its end is read, so only
/// `read` returning 0 proves that all of the data were sound. Throws FileError for data that are not gzip,
/// corrupt, truncated, or followed by anything but another member.
template <ByteSource Source>
class GzipSource {
 public:
  explicit GzipSource(Source source) : source_(std::move(source)), input_(input_capacity) {
    constexpr int largest_window = 15;
    constexpr int gzip_header_only = 16;
    if (inflateInit2(&inflater_, largest_window + gzip_header_only) != Z_OK) out_of_memory();
  }
  GzipSource(const GzipSource&) = delete;  // zlib's state points back at its stream
  GzipSource& operator=(const GzipSource&) = delete;
  ~GzipSource() { inflateEnd(&inflater_); }

  [[nodiscard]] std::size_t read(std::span<std::byte> buffer) {
    std::size_t filled = 0;
    while (filled < buffer.size() && (in_member_ || next_member())) filled += inflate_into(buffer.subspan(filled));
    return filled;
  }
  [[nodiscard]] const std::string& name() const noexcept { return source_.name(); }

 private:
  static constexpr std::size_t input_capacity = std::size_t{1} << 16;

  std::size_t inflate_into(std::span<std::byte> buffer) {
    if (inflater_.avail_in == 0) refill();
    constexpr std::size_t most = std::numeric_limits<uInt>::max();
    const std::size_t room = buffer.size() < most ? buffer.size() : most;
    inflater_.next_out = reinterpret_cast<Bytef*>(buffer.data());
    inflater_.avail_out = static_cast<uInt>(room);
    const int status = inflate(&inflater_, Z_NO_FLUSH);
    if (status == Z_STREAM_END)
      in_member_ = false;
    else if (status == Z_BUF_ERROR && ended_)
      throw FileError(name(), "is truncated",
                      text("the compressed data end inside gzip member ", members_, ", after ", consumed_, " bytes"),
                      "Download or copy the file again");
    else if (status == Z_MEM_ERROR)
      out_of_memory();
    else if (status != Z_OK && status != Z_BUF_ERROR)
      throw FileError(name(), "is corrupt",
                      text("zlib says '", inflater_.msg != nullptr ? inflater_.msg : zError(status),
                           "' in gzip member ", members_, ", near byte ", consumed_ - inflater_.avail_in),
                      "Download or copy the file again");
    return room - inflater_.avail_out;
  }

  /// Looks for a member at the current place. False at the end of the source.
  bool next_member() {
    while (inflater_.avail_in < magic_size && !ended_) refill();
    const auto* found = reinterpret_cast<const unsigned char*>(inflater_.next_in);
    if (inflater_.avail_in == 0 && members_ > 0) return false;
    if (inflater_.avail_in < magic_size || found[0] != 0x1F || found[1] != 0x8B) refuse_start();
    if (members_ > 0 && inflateReset(&inflater_) != Z_OK) out_of_memory();
    ++members_;
    in_member_ = true;
    return true;
  }

  /// Adds input behind what is left of it.
  void refill() {
    const std::size_t left = inflater_.avail_in;
    if (left > 0) std::memmove(input_.data(), inflater_.next_in, left);
    const std::size_t count = source_.read({input_.data() + left, input_.size() - left});
    ended_ = count == 0;
    consumed_ += count;
    inflater_.next_in = reinterpret_cast<Bytef*>(input_.data());
    inflater_.avail_in = static_cast<uInt>(left + count);
  }

  [[noreturn]] void refuse_start() const {
    if (consumed_ == 0) throw FileError(name(), "is not a gzip file", "it is empty", "Download or copy the file again");
    std::string found;
    for (std::size_t i = 0; i < magic_size && i < inflater_.avail_in; ++i) {
      constexpr const char* digits = "0123456789abcdef";
      found += text(i == 0 ? "" : " ", digits[inflater_.next_in[i] >> 4], digits[inflater_.next_in[i] & 15]);
    }
    if (members_ == 0)
      throw FileError(name(), "is not a gzip file", text("it starts with the bytes ", found, ", expected 1f 8b"),
                      "Give a file made by gzip, or read it without decompression");
    throw FileError(name(), "has bytes after its compressed data",
                    text("at byte ", consumed_ - inflater_.avail_in, ": ", found, ", expected the end or 1f 8b"),
                    "Download or copy the file again");
  }

  [[noreturn]] void out_of_memory() const {
    throw OutOfMemory(text("No memory to decompress '", name(), "'"), "zlib needs about 45 KiB",
                      "Free memory, or raise the limit of this process");
  }

  static constexpr std::size_t magic_size = 2;

  Source source_;
  AlignedBuffer<std::byte> input_;
  z_stream inflater_{};
  std::size_t consumed_ = 0;
  std::size_t members_ = 0;
  bool in_member_ = false;
  bool ended_ = false;
};

}  // namespace dist::io
