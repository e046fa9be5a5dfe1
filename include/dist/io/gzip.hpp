/// Readers for gzip files (RFC 1952) and for raw deflate data (RFC 1951).
#pragma once

#if !defined(DIST_COMPILED) && !__has_include(<zlib.h>)
#error "<zlib.h> of zlib was not found: install zlib1g-dev, and link dist::gzip (without CMake: -lz)"
#endif

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include <dist/core/config.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/io/byte_source.hpp>

namespace dist::io {

namespace detail {

/// Decompresses data from a source, which must be the same in all calls.
class Inflater {
 public:
  enum class Format : unsigned char { deflated, gzip };

  Inflater(Format format, const std::string& name);
  Inflater(Inflater&&) noexcept;
  Inflater& operator=(Inflater&&) noexcept;
  ~Inflater();

  [[nodiscard]] std::size_t read(AnySource source, std::span<std::byte> buffer);

 private:
  class State;
  std::unique_ptr<State> state_;
};

template <ByteSource Source, Inflater::Format format>
class InflatedSource {
 public:
  explicit InflatedSource(Source source) : source_(std::move(source)), inflater_(format, source_.name()) {}

  [[nodiscard]] std::size_t read(std::span<std::byte> buffer) { return inflater_.read(source_, buffer); }
  [[nodiscard]] const std::string& name() const noexcept { return source_.name(); }

 private:
  Source source_;
  Inflater inflater_;
};

}  // namespace detail

/// A ByteSource that decompresses another source: one or several concatenated gzip members.
///
/// Memory use is constant. The output is unlimited, but readers may stop at any byte. Checksums are verified at the end
/// of a member, so the data are valid only if `read` has returned 0. Zeros after a member are padding, like for gzip
/// and Python. Throws FileError if the data are not gzip, corrupt, truncated, or followed by anything other than zeros
/// or another member.
template <ByteSource Source>
class GzipSource : public detail::InflatedSource<Source, detail::Inflater::Format::gzip> {
 public:
  /// Decompresses `source`, whose first bytes must be a gzip header.
  explicit GzipSource(Source source) : GzipSource::InflatedSource(std::move(source)) {}
};

/// A ByteSource that decompresses the raw deflate data (RFC 1951) at the beginning of another source, without a
/// checksum. Memory use and errors are the same as for GzipSource.
template <ByteSource Source>
class InflateSource : public detail::InflatedSource<Source, detail::Inflater::Format::deflated> {
 public:
  /// Decompresses `source`.
  explicit InflateSource(Source source) : InflateSource::InflatedSource(std::move(source)) {}
};

/// Returns the CRC-32 (of gzip and ZIP) of `bytes`, appended to bytes with checksum `before`.
[[nodiscard]] std::uint32_t crc32_of(std::span<const std::byte> bytes, std::uint32_t before = 0);

}  // namespace dist::io

#ifndef DIST_COMPILED
#include <dist/io/gzip.ipp>
#endif
