#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dist/core/text.hpp>
#include <dist/io/little_endian.hpp>
#include <dist/net/error.hpp>

namespace dist::net {

/// What a frame carries: numbers in little-endian order, and texts after their lengths.
class RecordWriter {
 public:
  template <std::unsigned_integral T>
  RecordWriter& number(T value) {
    bytes_.resize(bytes_.size() + sizeof(T));
    io::store_little_endian(value, bytes_.data() + bytes_.size() - sizeof(T));
    return *this;
  }
  RecordWriter& bytes(std::span<const std::byte> content) {
    number(static_cast<std::uint32_t>(content.size()));
    bytes_.insert(bytes_.end(), content.begin(), content.end());
    return *this;
  }
  RecordWriter& string(std::string_view content) { return bytes(std::as_bytes(std::span{content})); }

  [[nodiscard]] std::span<const std::byte> content() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

/// Takes a record apart again. Throws FrameError where it ends early or has a text longer than allowed.
class RecordReader {
 public:
  explicit RecordReader(std::span<const std::byte> record) : rest_(record) {}

  template <std::unsigned_integral T>
  [[nodiscard]] T number() {
    return io::load_little_endian<T>(take(sizeof(T)).data());
  }
  [[nodiscard]] std::span<const std::byte> bytes() { return take(number<std::uint32_t>()); }
  [[nodiscard]] std::string string(std::size_t longest = 4096) {
    const std::span<const std::byte> content = bytes();
    if (content.size() > longest)
      throw FrameError("A record has a text that is too long", dist::concat(content.size(), " bytes, not ", longest),
                       "Something else than a process of this job wrote it");
    std::string result(content.size(), '\0');
    if (!content.empty()) std::memcpy(result.data(), content.data(), content.size());
    return result;
  }
  [[nodiscard]] bool empty() const { return rest_.empty(); }
  /// Throws FrameError unless everything has been read.
  void expect_end() const {
    if (!empty())
      throw FrameError("A record is longer than its content", dist::concat(rest_.size(), " bytes are left"),
                       "Let all processes of the job run the same version");
  }

 private:
  std::span<const std::byte> take(std::size_t size) {
    if (size > rest_.size())
      throw FrameError("A record ends early", dist::concat(size, " bytes wanted, ", rest_.size(), " left"),
                       "Let all processes of the job run the same version");
    return std::exchange(rest_, rest_.subspan(size)).first(size);
  }

  std::span<const std::byte> rest_;
};

}  // namespace dist::net
