#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/random.hpp>
#include <dist/core/tensor.hpp>
#include <dist/data/image_of.hpp>
#include <dist/data/random_map.hpp>

namespace dist::data {

namespace detail {

/// What `random_crop` does with an image.
class RandomCrop {
 public:
  explicit RandomCrop(std::size_t padding) : padding_(padding) {}

  template <class Element>
  [[nodiscard]] auto operator()(const Element& element, const RandomStream& random) const {
    const auto down = static_cast<std::size_t>(random.below(2 * padding_ + 1, first_draw));
    const auto right = static_cast<std::size_t>(random.below(2 * padding_ + 1, first_draw + 1));
    return with_image("random_crop", element,
                      [&]<class T>(TensorView<const T> image) { return cropped(image, down, right); });
  }

 private:
  static constexpr std::uint64_t first_draw = 0x63726F70;  // no other step draws these numbers

  /// What of an axis is taken from the image, in a window that begins `start` into its padded extent: `count` places from
  /// `from` on, which come to `to`.
  struct Overlap {
    std::size_t from;
    std::size_t to;
    std::size_t count;
  };
  [[nodiscard]] Overlap overlap(std::size_t start, std::size_t extent) const {
    const std::size_t to = start < padding_ ? std::min(padding_ - start, extent) : 0;
    const std::size_t from = start > padding_ ? std::min(start - padding_, extent) : 0;
    return {from, to, extent - std::max(from, to)};
  }

  template <class T>
  [[nodiscard]] Tensor<T> cropped(TensorView<const T> image, std::size_t down, std::size_t right) const {
    const std::size_t width = image.shape()[1];
    const std::size_t channels = image.shape()[2];
    Tensor<T> result{image.shape()};  // all zeros
    const Overlap rows = overlap(down, image.shape()[0]);
    const Overlap columns = overlap(right, width);
    const std::size_t bytes = columns.count * channels * sizeof(T);
    if (bytes == 0) return result;
    for (std::size_t y = 0; y < rows.count; ++y)
      std::memcpy(result.data() + ((rows.to + y) * width + columns.to) * channels,
                  image.data() + ((rows.from + y) * width + columns.from) * channels, bytes);
    return result;
  }

  std::size_t padding_;
};

}  // namespace detail

/// Moves each image, a Tensor or TensorView [height, width, channels] or the `x` of an Example, by up to `padding` pixels
/// along both axes: it is a window of the image's size, at a uniformly random place of the image with so many zeros on
/// each side. The place depends on `seed`, the epoch and the number of the element alone, see `random_map`. Throws
/// InvalidArgument for a padding of 0 and, while iterating, ShapeMismatch for another number of axes.
[[nodiscard]] inline auto random_crop(std::size_t padding, std::uint64_t seed = 0) {
  if (padding == 0)
    throw InvalidArgument("random_crop leaves every image as it is", "padding is 0", "Use 1 or more, such as 4");
  return random_map(detail::RandomCrop{padding}, seed);
}

/// How an image may be flipped: left and right, top and bottom, or each of them by a decision of its own.
enum class Flip : unsigned char { horizontal, vertical, both };

namespace detail {

/// What `random_flip` does with an image.
class RandomFlip {
 public:
  explicit RandomFlip(Flip flip) : flip_(flip) {}

  template <class Element>
  [[nodiscard]] auto operator()(const Element& element, const RandomStream& random) const {
    const bool mirrored = flip_ != Flip::vertical && random.below(2, first_draw) == 1;
    const bool upside_down = flip_ != Flip::horizontal && random.below(2, first_draw + 1) == 1;
    return with_image("random_flip", element,
                      [&]<class T>(TensorView<const T> image) { return flipped(image, mirrored, upside_down); });
  }

 private:
  static constexpr std::uint64_t first_draw = 0x666C6970;  // no other step draws these numbers

  template <class T>
  [[nodiscard]] static Tensor<T> flipped(TensorView<const T> image, bool mirrored, bool upside_down) {
    const std::size_t height = image.shape()[0];
    const std::size_t width = image.shape()[1];
    const std::size_t channels = image.shape()[2];
    Tensor<T> result{image.shape()};
    const std::size_t row = width * channels;
    if (row == 0) return result;
    for (std::size_t y = 0; y < height; ++y) {
      const T* const from = image.data() + (upside_down ? height - 1 - y : y) * row;
      T* const to = result.data() + y * row;
      if (!mirrored)
        std::memcpy(to, from, row * sizeof(T));
      else
        for (std::size_t x = 0; x < width; ++x)
          std::memcpy(to + x * channels, from + (width - 1 - x) * channels, channels * sizeof(T));
    }
    return result;
  }

  Flip flip_;
};

}  // namespace detail

/// Flips each image, a Tensor or TensorView [height, width, channels] or the `x` of an Example, or leaves it, each with
/// probability 1/2. Which one depends on `seed`, the epoch and the number of the element alone, see `random_map`. Throws,
/// while iterating, ShapeMismatch for another number of axes.
[[nodiscard]] inline auto random_flip(std::uint64_t seed = 0, Flip flip = Flip::horizontal) {
  return random_map(detail::RandomFlip{flip}, seed);
}

}  // namespace dist::data
