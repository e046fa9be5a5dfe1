#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <dist/core/algorithms.hpp>
#include <dist/core/error.hpp>
#include <dist/core/tensor.hpp>
#include <dist/data/image_of.hpp>
#include <dist/data/map.hpp>

namespace dist::data {

namespace detail {

/// What `resize_images` does with an image.
class ResizeImage {
 public:
  ResizeImage(std::size_t height, std::size_t width) : height_(height), width_(width) {}

  template <class Element>
  [[nodiscard]] auto operator()(const Element& element) const {
    return with_image("resize_images", element, [&]<class T>(TensorView<const T> image) { return resized(image); });
  }

 private:
  /// Where a pixel comes from along one axis: between two pixels, so much of the second one.
  struct Source {
    std::size_t first;
    std::size_t second;
    float share;
  };
  /// The sources of `count` pixels in `extent`, when the centres of pixels are halves.
  [[nodiscard]] static std::vector<Source> sources(std::size_t count, std::size_t extent) {
    std::vector<Source> all;
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
  [[nodiscard]] Tensor<T> resized(TensorView<const T> image) const {
    constexpr bool is_pixel = std::same_as<T, float> || std::same_as<T, std::uint8_t>;
    static_assert(is_pixel, "resize_images: pixels must be float or std::uint8_t");
    const Shape& shape = image.shape();
    if (image.size() == 0)
      throw ShapeMismatch("resize_images got an image without pixels", concat("its shape is ", to_string(shape)),
                          "Leave such images out with filter");
    const std::size_t channels = shape[2];
    const std::size_t row = shape[1] * channels;
    const std::vector<Source> columns = sources(width_, shape[1]);
    Tensor<T> result{Shape{height_, width_, channels}};
    T* to = result.data();
    const auto between = [](float a, float b, float share) { return a + (b - a) * share; };
    for (const Source& y : sources(height_, shape[0])) {
      const T* const above = image.data() + y.first * row;
      const T* const below = image.data() + y.second * row;
      for (const Source& x : columns)
        for (std::size_t channel = 0; channel < channels; ++channel) {
          const std::size_t left = x.first * channels + channel;
          const std::size_t right = x.second * channels + channel;
          const float value =
              between(between(static_cast<float>(above[left]), static_cast<float>(above[right]), x.share),
                      between(static_cast<float>(below[left]), static_cast<float>(below[right]), x.share), y.share);
          if constexpr (std::same_as<T, float>)
            *to++ = value;
          else
            *to++ = static_cast<std::uint8_t>(value + 0.5F);
        }
    }
    return result;
  }

  std::size_t height_;
  std::size_t width_;
};

}  // namespace detail

/// Brings each image, a Tensor or TensorView [height, width, channels] or the `x` of an Example, to one size, so that images
/// of different sizes can be batched: a pixel is interpolated bilinearly between the four next to its centre, as
/// tf.image.resize does, without a filter against aliasing. Bytes are rounded. Throws InvalidArgument for a size of 0 and,
/// while iterating, ShapeMismatch for another number of axes and for an image without pixels.
[[nodiscard]] inline auto resize_images(std::size_t height, std::size_t width) {
  if (height == 0 || width == 0)
    throw InvalidArgument("resize_images leaves nothing of an image", concat("the size is ", height, " x ", width),
                          "Use 1 or more pixels along both axes");
  return map(detail::ResizeImage{height, width});
}

}  // namespace dist::data
