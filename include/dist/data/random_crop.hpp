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

}  // namespace dist::data
