#pragma once

#include <cmath>
#include <cstring>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/data/images.hpp>

namespace dist::data::detail {

DIST_INLINE void require_image(const char* step, const Shape& shape) {
  if (shape.rank() != 3)
    throw ShapeMismatch(concat(step, " received an element that is not an image"),
                        concat("its shape is ", to_string(shape), ", expected [height, width, channels]"),
                        "Put it before batch, or give the images this shape with map");
}

DIST_INLINE void flip_image(const void* from, void* to, const Shape& shape, std::size_t size, Flip flip,
                            const RandomStream& random) {
  constexpr std::uint64_t first_draw = 0x666C6970;  // no other step draws these numbers
  const bool mirrored = flip != Flip::vertical && random.below(2, first_draw) == 1;
  const bool upside_down = flip != Flip::horizontal && random.below(2, first_draw + 1) == 1;
  const std::size_t height = shape[0];
  const std::size_t width = shape[1];
  const std::size_t pixel = shape[2] * size;
  const std::size_t row = width * pixel;
  if (row == 0) return;
  for (std::size_t y = 0; y < height; ++y) {
    const std::byte* const source = static_cast<const std::byte*>(from) + (upside_down ? height - 1 - y : y) * row;
    std::byte* const place = static_cast<std::byte*>(to) + y * row;
    if (!mirrored)
      std::memcpy(place, source, row);
    else
      for (std::size_t x = 0; x < width; ++x) std::memcpy(place + x * pixel, source + (width - 1 - x) * pixel, pixel);
  }
}

/// The overlap of an axis and a window that begins at `start` of the padded extent: `count` positions, copied from
/// `from` to `to`.
struct Overlap {
  std::size_t from;
  std::size_t to;
  std::size_t count;
};
[[nodiscard]] inline Overlap overlap(std::size_t start, std::size_t extent, std::size_t padding) {
  const std::size_t to = start < padding ? std::min(padding - start, extent) : 0;
  const std::size_t from = start > padding ? std::min(start - padding, extent) : 0;
  return {from, to, extent - std::max(from, to)};
}

DIST_INLINE void crop_image(const void* from, void* to, const Shape& shape, std::size_t size, std::size_t padding,
                            const RandomStream& random) {
  constexpr std::uint64_t first_draw = 0x63726F70;  // no other step draws these numbers
  const auto down = static_cast<std::size_t>(random.below(2 * padding + 1, first_draw));
  const auto right = static_cast<std::size_t>(random.below(2 * padding + 1, first_draw + 1));
  const Overlap rows = overlap(down, shape[0], padding);
  const Overlap columns = overlap(right, shape[1], padding);
  const std::size_t pixel = shape[2] * size;
  if (columns.count * pixel == 0) return;
  for (std::size_t y = 0; y < rows.count; ++y)
    std::memcpy(static_cast<std::byte*>(to) + ((rows.to + y) * shape[1] + columns.to) * pixel,
                static_cast<const std::byte*>(from) + ((rows.from + y) * shape[1] + columns.from) * pixel,
                columns.count * pixel);
}

/// The source of a resized pixel along one axis: two pixels, and the weight of the second.
struct PixelSource {
  std::size_t first;
  std::size_t second;
  float share;
};
/// Returns the sources of `count` pixels in `extent`, with pixel centres at half-integers.
[[nodiscard]] inline std::vector<PixelSource> pixel_sources(std::size_t count, std::size_t extent) {
  std::vector<PixelSource> all;
  const double scale = static_cast<double>(extent) / static_cast<double>(count);
  const double last = static_cast<double>(extent - 1);
  for (std::size_t i = 0; i < count; ++i) {
    const double place = (static_cast<double>(i) + 0.5) * scale - 0.5;
    const double below = std::floor(place);
    all.push_back({static_cast<std::size_t>(std::clamp(below, 0.0, last)),
                   static_cast<std::size_t>(std::clamp(below + 1, 0.0, last)), static_cast<float>(place - below)});
  }
  return all;
}

template <class T>
[[nodiscard]] Tensor<T> resized_image(TensorView<const T> image, std::size_t height, std::size_t width) {
  const Shape& shape = image.shape();
  if (image.size() == 0)
    throw ShapeMismatch("resize_images got an image without pixels", concat("its shape is ", to_string(shape)),
                        "Leave such images out with filter");
  const std::size_t channels = shape[2];
  const std::size_t row = shape[1] * channels;
  const std::vector<PixelSource> columns = pixel_sources(width, shape[1]);
  Tensor<T> result{Shape{height, width, channels}};
  T* to = result.data();
  const auto between = [](float a, float b, float share) { return a + (b - a) * share; };
  for (const PixelSource& y : pixel_sources(height, shape[0])) {
    const T* const above = image.data() + y.first * row;
    const T* const below = image.data() + y.second * row;
    for (const PixelSource& x : columns)
      for (std::size_t channel = 0; channel < channels; ++channel) {
        const std::size_t left = x.first * channels + channel;
        const std::size_t right = x.second * channels + channel;
        const float value =
            between(between(static_cast<float>(above[left]), static_cast<float>(above[right]), x.share),
                    between(static_cast<float>(below[left]), static_cast<float>(below[right]), x.share), y.share);
        if constexpr (std::is_same_v<T, float>)
          *to++ = value;
        else
          *to++ = static_cast<std::uint8_t>(value + 0.5F);
      }
  }
  return result;
}

DIST_INLINE Tensor<float> resized(TensorView<const float> image, std::size_t height, std::size_t width) {
  return resized_image(image, height, width);
}
DIST_INLINE Tensor<std::uint8_t> resized(TensorView<const std::uint8_t> image, std::size_t height, std::size_t width) {
  return resized_image(image, height, width);
}

}  // namespace dist::data::detail
