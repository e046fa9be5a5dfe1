/// Pipeline steps for images: random flips, random crops and resizing.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <dist/core/config.hpp>
#include <dist/core/error.hpp>
#include <dist/core/random.hpp>
#include <dist/core/shape.hpp>
#include <dist/core/tensor.hpp>
#include <dist/core/type_traits.hpp>
#include <dist/data/example.hpp>
#include <dist/data/map.hpp>

namespace dist::data {

/// The axes of random flips: left-right, top-bottom, or both, decided independently.
enum class Flip : unsigned char { horizontal, vertical, both };

namespace detail {

/// Throws ShapeMismatch, naming `step`, unless the shape is [height, width, channels].
void require_image(const char* step, const Shape& shape);

/// Returns the element with its image replaced by `change(view)`. The image is a Tensor or a TensorView [height, width,
/// channels], or the `x` of an Example. Throws ShapeMismatch, naming `step`, if it has another rank.
template <class Element, class Change>
[[nodiscard]] auto with_image(const char* step, const Element& element, Change change) {
  if constexpr (dist::detail::is_specialization<Element, Example>) {
    return Example{with_image(step, element.x, change), element.y};
  } else {
    constexpr bool is_array =
        dist::detail::is_specialization<Element, Tensor> || dist::detail::is_specialization<Element, TensorView>;
    static_assert(is_array,
                  "random_flip, random_crop and resize_images: elements must be Tensors or TensorViews, or Examples "
                  "whose x is one: convert them with map");
    if constexpr (is_array) {
      require_image(step, element.shape());
      return change(TensorView<const std::remove_const_t<typename Element::Element>>{element});
    }
  }
}

/// Copies an image of `shape`, randomly flipped. An element has `size` bytes.
void flip_image(const void* from, void* to, const Shape& shape, std::size_t size, Flip flip,
                const RandomStream& random);
/// Copies the part of an image of `shape` that is inside a random window.
void crop_image(const void* from, void* to, const Shape& shape, std::size_t size, std::size_t padding,
                const RandomStream& random);
[[nodiscard]] Tensor<float> resized(TensorView<const float> image, std::size_t height, std::size_t width);
[[nodiscard]] Tensor<std::uint8_t> resized(TensorView<const std::uint8_t> image, std::size_t height, std::size_t width);

// The functions of the steps. Structs, because a lambda with captures has no assignment.
struct RandomCrop {
  std::size_t padding;
  auto operator()(const auto& element, const RandomStream& random) const {
    return with_image("random_crop", element, [&]<class T>(TensorView<const T> image) {
      Tensor<T> result{image.shape()};  // all zeros
      crop_image(image.data(), result.data(), image.shape(), sizeof(T), padding, random);
      return result;
    });
  }
};
struct RandomFlip {
  Flip flip;
  auto operator()(const auto& element, const RandomStream& random) const {
    return with_image("random_flip", element, [&]<class T>(TensorView<const T> image) {
      Tensor<T> result{image.shape()};
      flip_image(image.data(), result.data(), image.shape(), sizeof(T), flip, random);
      return result;
    });
  }
};
struct ResizeImage {
  std::size_t height, width;
  auto operator()(const auto& element) const {
    return with_image("resize_images", element, [&]<class T>(TensorView<const T> image) {
      constexpr bool is_pixel = std::same_as<T, float> || std::same_as<T, std::uint8_t>;
      static_assert(is_pixel, "resize_images: pixels must be float or std::uint8_t");
      return resized(image, height, width);
    });
  }
};

}  // namespace detail

/// Shifts each image by up to `padding` pixels along both axes: crops a window of the image's size at a uniformly
/// random position of the zero-padded image. The image is a Tensor or TensorView [height, width, channels], or the `x`
/// of an Example. For `seed`, see `random_map`. Throws InvalidArgument if `padding` is 0; a pass throws ShapeMismatch
/// if an image has another rank.
[[nodiscard]] inline auto random_crop(std::size_t padding, std::uint64_t seed = 0) {
  if (padding == 0)
    throw InvalidArgument("random_crop leaves every image unchanged", "padding is 0", "Use 1 or more, such as 4");
  return random_map(detail::RandomCrop{padding}, seed);
}

/// Flips each image with probability 1/2. The image is a Tensor or TensorView [height, width, channels], or the `x` of
/// an Example. For `seed`, see `random_map`. A pass throws ShapeMismatch if an image has another rank.
[[nodiscard]] inline auto random_flip(std::uint64_t seed = 0, Flip flip = Flip::horizontal) {
  return random_map(detail::RandomFlip{flip}, seed);
}

/// Resizes each image to one size. The image is a Tensor or TensorView [height, width, channels], or the `x` of an
/// Example. Bilinear interpolation like tf.image.resize, without antialiasing; bytes are rounded. Throws
/// InvalidArgument if the size is 0; a pass throws ShapeMismatch if an image has another rank or no pixels.
[[nodiscard]] inline auto resize_images(std::size_t height, std::size_t width) {
  if (height == 0 || width == 0)
    throw InvalidArgument("resize_images cannot make an empty image", concat("the size is ", height, " x ", width),
                          "Use 1 or more pixels along both axes");
  return map(detail::ResizeImage{height, width});
}

}  // namespace dist::data

#ifndef DIST_COMPILED
#include <dist/data/images.ipp>
#endif
