#pragma once

#include <limits>
#include <utility>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/data/token_file.hpp>
#include <dist/io/little_endian.hpp>

namespace dist::data {

namespace detail {

DIST_INLINE Tokens::Tokens(std::string path, std::size_t token_bytes)
    : file_(std::move(path)), token_bytes_(token_bytes) {
  constexpr std::size_t header_bytes = 1024;  // of llm.c: a magic number, a version and the number of tokens
  constexpr std::uint32_t magic = 20240520;
  std::byte header[12];
  const auto number = [&](std::size_t which) { return io::load_little_endian<std::uint32_t>(header + 4 * which); };
  std::uint64_t bytes = file_->size();
  const bool has_header =
      bytes >= header_bytes && file_->read_at(0, header) == sizeof header && number(0) == magic && number(1) == 1;
  if (has_header) {
    start_ = header_bytes;
    bytes -= header_bytes;
    if (token_bytes_ != 2 || number(2) != bytes / 2)
      throw FileError(file_->name(), "does not have the tokens of its header",
                      concat("the header has ", number(2), " tokens of 2 bytes, the file ", bytes,
                             " bytes for tokens of ", token_bytes_),
                      "Read it as std::uint16_t, or write it again");
  }
  if (bytes % token_bytes_ != 0)
    throw FileError(file_->name(), "ends within a token", concat(bytes, " bytes, a token has ", token_bytes_),
                    "Give the type of its tokens, or write it again");
  count_ = bytes / token_bytes_;
}

DIST_INLINE void Tokens::read(std::uint64_t first, std::span<std::int32_t> tokens,
                              std::vector<std::byte>& buffer) const {
  if (!file_) {
    std::copy_n(&in_memory_[static_cast<std::size_t>(first)], tokens.size(), tokens.data());
    return;
  }
  buffer.resize(tokens.size() * token_bytes_);
  if (file_->read_at(start_ + first * token_bytes_, buffer) != buffer.size())
    throw FileError(file_->name(), "has become shorter", concat("token ", first, " is beyond its end"),
                    "Do not change the file while it is read");
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::byte* const bytes = &buffer[i * token_bytes_];
    const std::uint32_t token = token_bytes_ == 1   ? std::to_integer<std::uint32_t>(*bytes)
                                : token_bytes_ == 2 ? io::load_little_endian<std::uint16_t>(bytes)
                                                    : io::load_little_endian<std::uint32_t>(bytes);
    if (token > static_cast<std::uint32_t>(std::numeric_limits<std::int32_t>::max()))
      throw FileError(file_->name(), "has a token out of range", concat("token ", first + i, " is ", token),
                      "Give the type of its tokens");
    tokens[i] = static_cast<std::int32_t>(token);
  }
}

DIST_INLINE void Tokens::require_window(std::size_t length) const {
  if (length == 0)
    throw InvalidArgument("Windows of tokens are empty", "length is 0", "Give the length of the sequences");
  if (count_ > length) return;
  const std::string why = concat("it has ", count_, " tokens, a window and its targets need ", length, " + 1");
  const char* const suggestion = "Give shorter windows or more text";
  if (file_) throw FileError(file_->name(), "is shorter than a window", why, suggestion);
  throw InvalidArgument("The list of token_windows is shorter than a window", why, suggestion);
}

}  // namespace detail

DIST_INLINE bool TokenWindows::Iterator::next(Element& window) {
  if (next_ >= dataset_->cardinality().count()) return false;
  const std::size_t length = dataset_->length_;
  dataset_->tokens_->read(next_ * length, window_, bytes_);
  window.x.resize(Shape{length});
  window.y.resize(Shape{length});
  std::copy_n(window_.data(), length, window.x.data());
  std::copy_n(window_.data() + 1, length, window.y.data());
  ++next_;
  return true;
}

}  // namespace dist::data
