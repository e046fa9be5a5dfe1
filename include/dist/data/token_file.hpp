#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/core/light_memory.hpp>
#include <dist/core/tensor.hpp>
#include <dist/data/dataset.hpp>
#include <dist/data/example.hpp>
#include <dist/io/random_access.hpp>

namespace dist::data {

namespace detail {

/// Tokens in memory, or of a file, which are read where they are needed: the system keeps what it has read in its cache.
class Tokens {
 public:
  /// Throws FileError.
  Tokens(std::string path, std::size_t token_bytes);
  explicit Tokens(std::vector<std::int32_t> tokens) : in_memory_(std::move(tokens)), count_(in_memory_.size()) {}

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  /// Throws InvalidArgument if `length` is 0, and InvalidArgument or FileError if there are too few tokens for a window.
  void require_window(std::size_t length) const;
  /// Reads the tokens from number `first` on. Throws FileError if reading fails or a token is above 2^31 - 1.
  void read(std::uint64_t first, std::span<std::int32_t> tokens, std::vector<std::byte>& buffer) const;

 private:
  std::vector<std::int32_t> in_memory_;
  std::optional<io::RandomAccessFile> file_;
  std::size_t token_bytes_ = 0;
  std::uint64_t start_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace detail

/// Windows of tokens. Made by `token_file` and `token_windows`.
class TokenWindows : public DatasetRange<TokenWindows> {
 public:
  using Element = Example<Tensor<std::int32_t>, Tensor<std::int32_t>>;

  /// The dataset that `token_file` or `token_windows` makes. Throws their exceptions.
  TokenWindows(std::shared_ptr<const detail::Tokens> tokens, std::size_t length)
      : tokens_(std::move(tokens)), length_(length) {
    tokens_->require_window(length_);
  }

  /// One pass over the dataset.
  class Iterator {
   public:
    explicit Iterator(const TokenWindows& dataset) : dataset_(&dataset), window_(dataset.length_ + 1) {}

    bool next(Element& window);
    [[nodiscard]] std::uint64_t position() const noexcept { return next_; }
    void seek(std::uint64_t position) noexcept { next_ = position; }

   private:
    const TokenWindows* dataset_;
    std::uint64_t next_ = 0;
    std::vector<std::int32_t> window_;
    std::vector<std::byte> bytes_;
  };

  [[nodiscard]] Iterator iterate(std::uint64_t) const { return Iterator{*this}; }
  [[nodiscard]] Cardinality cardinality() const {
    return Cardinality::known(static_cast<std::size_t>((tokens_->count() - 1) / length_));
  }

 private:
  std::shared_ptr<const detail::Tokens> tokens_;
  std::size_t length_;
};

/// A dataset of the consecutive windows of a file of tokens, for language models: `x` [length] has the tokens, `y`
/// [length] the next token of each. Tokens after the last whole window are left out.
///
/// The file has little-endian tokens of type `Token`, and nothing else, or llm.c's header of 1024 bytes before tokens
/// of 16 bits. The bytes of a text are tokens of 8 bits. A pass reads one window at a time, so that a file may be larger
/// than the memory. For windows in random order: `token_file<std::uint16_t>("train.bin", 1024) | index_shuffle(seed)`.
///
/// Throws InvalidArgument if `length` is 0, and FileError if the file is missing, ends within a token or is shorter
/// than a window. A pass throws FileError if reading fails, or for a token above 2^31 - 1.
template <class Token>
[[nodiscard]] TokenWindows token_file(std::string path, std::size_t length) {
  constexpr bool is_token = std::unsigned_integral<Token> && sizeof(Token) <= 4 && !std::same_as<Token, bool>;
  static_assert(is_token, "token_file: the tokens of a file are std::uint8_t, std::uint16_t or std::uint32_t");
  return {std::make_shared<const detail::Tokens>(std::move(path), sizeof(Token)), length};
}

/// A dataset of the consecutive windows of tokens in memory, with the same elements as `token_file`. Copies of the
/// dataset share the tokens. Throws InvalidArgument if `length` is 0 or there are fewer than `length + 1` tokens.
[[nodiscard]] inline TokenWindows token_windows(std::vector<std::int32_t> tokens, std::size_t length) {
  return {std::make_shared<const detail::Tokens>(std::move(tokens)), length};
}

}  // namespace dist::data

#ifndef DIST_COMPILED
#include <dist/data/token_file.ipp>
#endif
