/// Preprocessing that learns from data, for functions of `map`. A checkpoint of the model and of a struct of these
/// predicts from raw columns:
///
///     struct Features {
///       data::Normalization size;
///       data::StringLookup fuel;
///
///       void track(auto& visit) { visit("size", size), visit("fuel", fuel); }
///       dist::Tensor<float> operator()(const Car& car) const {
///         return data::features(size(car.size), data::one_hot<4>(fuel(car.fuel)));
///       }
///     };
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dist/core/config.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/data/dataset.hpp>

namespace dist::data {

namespace detail {

template <class T>
  requires std::is_arithmetic_v<T>
[[nodiscard]] std::span<const T> numbers_of(const T& number) { return {&number, 1}; }
template <class T, std::size_t N>
  requires std::is_arithmetic_v<T>
[[nodiscard]] std::span<const T> numbers_of(const std::array<T, N>& numbers) { return numbers; }
template <class T>
  requires std::is_arithmetic_v<T>
[[nodiscard]] std::span<const T> numbers_of(const Tensor<T>& numbers) { return numbers.elements(); }

/// A number, or a std::array or Tensor of numbers.
template <class X>
concept HasNumbers = requires(const X& x) {
  numbers_of(x);
};

/// Throws ShapeMismatch unless the saved `part` is a list.
void require_list(std::string_view part, const Shape& shape);

/// A list of numbers of any length in checkpoints. See Trackable.
template <class T>
struct LearntNumbers {
  std::vector<T> values;

  [[nodiscard]] Shape shape() const { return Shape{values.size()}; }
  void require_restorable(const Shape& saved) const { require_list("numbers", saved); }
  [[nodiscard]] Tensor<T> whole(const auto& /*scope*/) const { return {shape(), std::span{values}}; }
  void restore(const auto& /*scope*/, TensorView<const T> saved) {
    values.assign(saved.data(), saved.data() + saved.size());
  }
};

/// Different words, in checkpoints as text with a zero byte after each word. See Trackable.
class LearntWords {
 public:
  /// Returns the place of a word in the list, or the list's size.
  [[nodiscard]] std::size_t find(std::string_view word) const;
  void assign(std::vector<std::string> words);
  [[nodiscard]] const std::vector<std::string>& words() const noexcept { return words_; }

  [[nodiscard]] Shape shape() const { return Shape{text().size()}; }
  void require_restorable(const Shape& saved) const { require_list("words", saved); }
  [[nodiscard]] Tensor<std::uint8_t> whole(const auto& /*scope*/) const {
    const std::vector<std::uint8_t> bytes = text();
    return {Shape{bytes.size()}, std::span{bytes}};
  }
  void restore(const auto& /*scope*/, TensorView<const std::uint8_t> saved) {
    restore_text({saved.data(), saved.size()});
  }

 private:
  [[nodiscard]] std::vector<std::uint8_t> text() const;
  void restore_text(std::span<const std::uint8_t> bytes);

  std::vector<std::string> words_;
  std::vector<std::size_t> sorted_;  // the places of the words in alphabetical order
};

}  // namespace detail

/// Scales each feature to mean 0 and variance 1 over the data of `adapt`: (x - mean) / max(sqrt(variance), 1e-7), as in
/// Keras' layer with one mean for each feature.
class Normalization {
 public:
  /// Computes mean and variance of one pass over a dataset of examples, which are numbers, or std::arrays or Tensors of
  /// numbers. Replaces earlier statistics. Throws InvalidArgument without examples, and ShapeMismatch if examples
  /// differ in their number of features.
  template <Dataset D>
  void adapt(const D& dataset) {
    constexpr bool has_numbers = detail::HasNumbers<ElementOf<D>>;
    static_assert(has_numbers,
                  "Normalization::adapt: the elements must be numbers, or std::arrays or Tensors of numbers: map them");
    if constexpr (has_numbers) {
      Sums sums;
      auto pass = dataset.iterate(0);
      std::vector<double> example;
      for (ElementOf<D> element{}; pass.next(element);) {
        const auto numbers = detail::numbers_of(std::as_const(element));
        example.assign(numbers.begin(), numbers.end());
        sums.add(example);
      }
      adapt_to(sums);
    }
  }

  /// Returns the scaled features of an example. Throws InvalidArgument before `adapt` or a restore, and ShapeMismatch
  /// for another number of features.
  template <class T>
    requires std::is_arithmetic_v<T>
  [[nodiscard]] float operator()(T number) const {
    float scaled = 0;
    scale(detail::numbers_of(number), &scaled);
    return scaled;
  }
  /// Scales the features in a std::array, with the same exceptions.
  template <class T, std::size_t N>
  [[nodiscard]] std::array<float, N> operator()(const std::array<T, N>& numbers) const {
    std::array<float, N> scaled{};
    scale(detail::numbers_of(numbers), scaled.data());
    return scaled;
  }
  /// Scales the features in a Tensor and keeps its shape, with the same exceptions.
  template <class T>
  [[nodiscard]] Tensor<float> operator()(const Tensor<T>& numbers) const {
    Tensor<float> scaled{numbers.shape()};
    scale(detail::numbers_of(numbers), scaled.data());
    return scaled;
  }

  /// One number per feature; empty before `adapt` or a restore.
  [[nodiscard]] std::span<const double> mean() const noexcept { return mean_.values; }
  /// One number per feature, with the number of examples as divisor; empty before `adapt` or a restore.
  [[nodiscard]] std::span<const double> variance() const noexcept { return variance_.values; }

  /// Tracks the statistics. See Trackable.
  void track(auto& visit) {
    visit("mean", mean_);
    visit("variance", variance_);
  }

 private:
  /// Mean and squared distances from it, by Welford's update.
  struct Sums {
    std::size_t count = 0;
    std::vector<double> mean, squares;
    void add(std::span<const double> example);
  };
  void adapt_to(const Sums& sums);
  void require_features(std::size_t count) const;
  [[nodiscard]] double deviation(std::size_t feature) const;

  template <class T>
  void scale(std::span<const T> numbers, float* scaled) const {
    require_features(numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i)
      scaled[i] = static_cast<float>((static_cast<double>(numbers[i]) - mean_.values[i]) / deviation(i));
  }

  detail::LearntNumbers<double> mean_, variance_;
};

/// Numbers words: 0 for an unknown word, then the words of the data of `adapt` from 1 on, the most frequent first and
/// equally frequent ones in reverse alphabetical order, as Keras' layer does.
class StringLookup {
 public:
  StringLookup() = default;
  /// Keeps at most `max_tokens` numbers, including 0.
  explicit StringLookup(std::size_t max_tokens) : max_tokens_(max_tokens) {}

  /// Replaces the vocabulary by the words of one pass over a dataset of std::strings. Throws InvalidArgument for a word
  /// with a zero byte.
  template <Dataset D>
  void adapt(const D& dataset) {
    constexpr bool has_words = std::same_as<ElementOf<D>, std::string>;
    static_assert(has_words, "StringLookup::adapt: the elements must be std::strings: map them");
    if constexpr (has_words) {
      std::vector<std::string> all;
      auto pass = dataset.iterate(0);
      for (std::string word; pass.next(word);) all.push_back(word);
      adapt_to(std::move(all));
    }
  }

  /// Returns the number of a word, below `size()`.
  [[nodiscard]] std::size_t operator()(std::string_view word) const;
  /// Returns the word of a number; "[UNK]" for 0. Throws InvalidArgument unless `number` is below `size()`.
  [[nodiscard]] std::string_view word(std::size_t number) const;
  /// The count of numbers, 1 before `adapt`.
  [[nodiscard]] std::size_t size() const noexcept { return 1 + words_.words().size(); }

  /// Tracks the vocabulary. See Trackable.
  void track(auto& visit) { visit("vocabulary", words_); }

 private:
  void adapt_to(std::vector<std::string> all);

  std::size_t max_tokens_ = 0;  // 0 for no limit
  detail::LearntWords words_;
};

/// Numbers characters for language models: the different bytes of the text of `adapt`, sorted, from 0 on. A checkpoint
/// that includes it generates text without the original text.
///
///     data::CharacterLookup characters;
///     characters.adapt(text);
///     const auto train = data::token_windows(characters.encode(text), 64) | data::index_shuffle(seed) | data::batch(32);
class CharacterLookup {
 public:
  /// Replaces the vocabulary by the bytes of a text.
  void adapt(std::string_view text);

  /// Returns the number of each byte, below `size()`. Throws InvalidArgument, with the byte and its position, if a byte
  /// is not in the vocabulary.
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text) const;
  /// Returns the text of some numbers. Throws InvalidArgument, with the number and its position, unless all are below
  /// `size()`.
  [[nodiscard]] std::string decode(std::span<const std::int32_t> numbers) const;
  /// The count of different bytes, at most 256; 0 before `adapt`.
  [[nodiscard]] std::size_t size() const noexcept { return bytes_.values.size(); }

  /// Tracks the vocabulary. See Trackable.
  void track(auto& visit) { visit("vocabulary", bytes_); }

 private:
  detail::LearntNumbers<std::uint8_t> bytes_;
};

namespace detail {

/// Throws InvalidArgument unless `number` is below `count`.
void require_class(std::size_t number, std::size_t count);

template <class... Parts>
[[nodiscard]] Tensor<float> features_of(const Parts&... parts) {
  Tensor<float> all{Shape{(std::size_t{0} + ... + parts.size())}};
  float* next = all.data();
  const auto append = [&](const auto& numbers) {
    for (const auto number : numbers) *next++ = static_cast<float>(number);
  };
  (append(parts), ...);
  return all;
}

}  // namespace detail

/// Returns `Count` numbers: 1 at place `number`, 0 elsewhere. Throws InvalidArgument unless `number` is below `Count`.
template <std::size_t Count>
[[nodiscard]] std::array<float, Count> one_hot(std::size_t number) {
  detail::require_class(number, Count);
  std::array<float, Count> all{};
  all[number] = 1;
  return all;
}

/// Returns the numbers of all parts, one after the other: the features of an example. A part is a number, or a
/// std::array or Tensor of numbers.
template <detail::HasNumbers... Parts>
[[nodiscard]] Tensor<float> features(const Parts&... parts) {
  return detail::features_of(detail::numbers_of(parts)...);
}

}  // namespace dist::data

#ifndef DIST_COMPILED
#include <dist/data/preprocessing.ipp>
#endif
