#pragma once

#include <cstddef>
#include <string>

#include <dist/core/static_shape.hpp>
#include <dist/core/text.hpp>

namespace dist::nn {

/// No border: windows lie inside the image, and rows and columns that no window reaches are not used. Keras'
/// default.
struct Valid {
  [[nodiscard]] static constexpr std::size_t output(std::size_t extent, std::size_t window, std::size_t stride) {
    return extent < window ? 0 : (extent - window) / stride + 1;
  }
  [[nodiscard]] static constexpr std::size_t before(std::size_t, std::size_t, std::size_t) { return 0; }
};

/// Zeros around the image, as many as make the output ceil(extent / stride); an odd one goes to the end, as in
/// TensorFlow.
struct Same {
  [[nodiscard]] static constexpr std::size_t output(std::size_t extent, std::size_t, std::size_t stride) {
    return (extent + stride - 1) / stride;
  }
  [[nodiscard]] static constexpr std::size_t before(std::size_t extent, std::size_t window, std::size_t stride) {
    const std::size_t covered = (output(extent, window, stride) - 1) * stride + window;
    return covered > extent ? (covered - extent) / 2 : 0;
  }
};

/// So many zeros before and after each row and column of the image, whatever its size: PyTorch's `padding`.
template <std::size_t Before, std::size_t After = Before>
struct Pad {
  [[nodiscard]] static constexpr std::size_t output(std::size_t extent, std::size_t window, std::size_t stride) {
    return Valid::output(Before + extent + After, window, stride);
  }
  [[nodiscard]] static constexpr std::size_t before(std::size_t, std::size_t, std::size_t) { return Before; }
};

/// A dense layer's numbers.
template <std::size_t Inputs, std::size_t Units, class ActivationFunction>
struct DenseGeometry {
  using Activation = ActivationFunction;
  static constexpr std::size_t inputs = Inputs;
  static constexpr std::size_t units = Units;

  [[nodiscard]] static std::string describe() { return concat(inputs, " inputs, ", units, " units"); }
};

/// The numbers of an image alone, the StaticShape [height, width, channels].
template <class Image>
struct ImageGeometry {
  static constexpr std::size_t pixels = Image::template extent<0> * Image::template extent<1>;
  static constexpr std::size_t channels = Image::template extent<2>;
};

/// Square windows that slide over an image: the part that convolution and pooling share. `Image` is the
/// StaticShape [height, width, channels].
template <class Image, std::size_t Window, std::size_t Stride, class Padding>
struct WindowGeometry {
 private:
  static constexpr std::size_t after(std::size_t extent, std::size_t outputs, std::size_t before) {
    const std::size_t reached = (outputs - 1) * Stride + Window;
    return reached > extent + before ? reached - extent - before : 0;
  }

 public:
  static constexpr std::size_t height = Image::template extent<0>;
  static constexpr std::size_t width = Image::template extent<1>;
  static constexpr std::size_t channels = Image::template extent<2>;
  static constexpr std::size_t window = Window;
  static constexpr std::size_t stride = Stride;
  static constexpr std::size_t output_height = Padding::output(height, window, stride);
  static constexpr std::size_t output_width = Padding::output(width, window, stride);
  static constexpr std::size_t pad_top = Padding::before(height, window, stride);
  static constexpr std::size_t pad_left = Padding::before(width, window, stride);
  /// Zeros after the last row and column, so that the last window ends in them.
  static constexpr std::size_t pad_bottom = after(height, output_height, pad_top);
  static constexpr std::size_t pad_right = after(width, output_width, pad_left);
  /// Whether each window has an element of the image. Pooling needs it: there is no maximum of none, and no mean.
  static constexpr bool windows_reach_image = pad_top < window && pad_left < window &&
                                              (output_height - 1) * stride < height + pad_top &&
                                              (output_width - 1) * stride < width + pad_left;

  [[nodiscard]] static std::string describe() {
    return concat("images ", height, " x ", width, " x ", channels, ", window ", window, ", stride ", stride);
  }
};

/// A convolution's numbers. Channels and filters are divided into `groups`, one group of channels after another, and each
/// filter sees the channels of its group.
template <class Image, std::size_t Filters, std::size_t Window, std::size_t Stride, class Padding,
          class ActivationFunction, std::size_t Groups = 1>
struct Conv2DGeometry : WindowGeometry<Image, Window, Stride, Padding> {
  using Activation = ActivationFunction;
  static constexpr std::size_t filters = Filters;
  static constexpr std::size_t groups = Groups;
  static constexpr std::size_t group_channels = Image::template extent<2> / Groups;
  static constexpr std::size_t group_filters = Filters / Groups;

  [[nodiscard]] static std::string describe() {
    const std::string all =
        concat(WindowGeometry<Image, Window, Stride, Padding>::describe(), ", ", filters, " filters");
    return groups == 1 ? all : concat(all, " in ", groups, " groups");
  }
};

/// A pooling's numbers.
template <class Image, std::size_t Window, std::size_t Stride, class Padding = Valid>
struct PoolGeometry : WindowGeometry<Image, Window, Stride, Padding> {};

/// A pooling over all pixels of an image, whose ImageGeometry is given: one window over a column of them.
template <class Image>
using GlobalPoolGeometry =
    PoolGeometry<StaticShape<Image::pixels, 1, Image::channels>, Image::pixels, Image::pixels, Same>;

}  // namespace dist::nn
