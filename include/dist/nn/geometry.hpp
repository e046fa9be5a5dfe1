#pragma once

#include <cstddef>
#include <string>
#include <type_traits>

#include <dist/core/config.hpp>
#include <dist/core/static_shape.hpp>
#include <dist/core/text.hpp>
#include <dist/nn/activation.hpp>

namespace dist::nn {

/// No padding: windows are inside the image, and trailing rows and columns without a window are ignored. Keras'
/// default.
///
/// A padding is an empty type with two functions. `output(extent, window, stride)` is the number of windows along an
/// axis, and `before(extent, window, stride)` the number of zeros before its first element.
struct Valid {
  [[nodiscard]] static constexpr std::size_t output(std::size_t extent, std::size_t window, std::size_t stride) {
    return extent < window ? 0 : (extent - window) / stride + 1;
  }
  [[nodiscard]] static constexpr std::size_t before(std::size_t, std::size_t, std::size_t) { return 0; }
};

/// Zeros so that the output's extent is ceil(extent / stride), an odd one at the end, as in TensorFlow.
struct Same {
  [[nodiscard]] static constexpr std::size_t output(std::size_t extent, std::size_t, std::size_t stride) {
    return (extent + stride - 1) / stride;
  }
  [[nodiscard]] static constexpr std::size_t before(std::size_t extent, std::size_t window, std::size_t stride) {
    const std::size_t covered = (output(extent, window, stride) - 1) * stride + window;
    return covered > extent ? (covered - extent) / 2 : 0;
  }
};

/// `Before` and `After` zeros around each axis: PyTorch's `padding`.
template <std::size_t Before, std::size_t After = Before>
struct Pad {
  [[nodiscard]] static constexpr std::size_t output(std::size_t extent, std::size_t window, std::size_t stride) {
    return Valid::output(Before + extent + After, window, stride);
  }
  [[nodiscard]] static constexpr std::size_t before(std::size_t, std::size_t, std::size_t) { return Before; }
};

/// The sizes of a dense layer.
template <std::size_t Inputs, std::size_t Units, class ActivationFunction, bool HasBias = true>
struct DenseGeometry {
  /// The activation that the kernel applies.
  using Activation = ActivationFunction;
  /// One row of the product.
  using Input = StaticShape<Inputs>;
  /// One row of its result.
  using Output = StaticShape<Units>;
  static constexpr bool has_bias = HasBias;      ///< false: no bias is added
  static constexpr std::size_t inputs = Inputs;  ///< elements of an input row
  static constexpr std::size_t units = Units;    ///< elements of an output row

  /// Returns the sizes as text, for messages.
  [[nodiscard]] static std::string describe() { return concat(inputs, " inputs, ", units, " units"); }
};

/// The sizes of scaled dot-product attention with several heads; `width` is per head. `heads / key_heads` heads in a
/// row share a head of keys and values.
struct AttentionSizes {
  std::size_t length;     ///< elements of a sequence
  std::size_t heads;      ///< heads of queries and outputs
  std::size_t key_heads;  ///< heads of keys and values
  std::size_t width;      ///< numbers of a query or key of a head
  bool is_causal;         ///< each element attends to itself and the elements before it

  /// Returns the columns of queries and outputs.
  [[nodiscard]] constexpr std::size_t columns() const noexcept { return heads * width; }
  /// Returns the columns of keys and values.
  [[nodiscard]] constexpr std::size_t key_columns() const noexcept { return key_heads * width; }
};

/// The inputs of attention of one sequence.
template <class T>
struct AttentionInputs {
  const T* queries;  ///< [length, heads * width]
  const T* keys;     ///< [length, key_heads * width]
  const T* values;   ///< as keys
};
/// The gradient of a sequence's outputs, and the places for the gradients of its queries, keys and values.
template <class T>
struct AttentionGradients {
  const T* outputs;  ///< [length, heads * width]
  T* queries;        ///< as outputs
  T* keys;           ///< [length, key_heads * width]
  T* values;         ///< as keys
};

/// The sizes of an image; `Image` is the StaticShape [height, width, channels].
template <class Image>
struct ImageGeometry {
  static constexpr std::size_t pixels = Image::template extent<0> * Image::template extent<1>;  ///< height times width
  static constexpr std::size_t channels = Image::template extent<2>;  ///< extent of the last axis
};

/// The image [1, length, channels] of a sequence [length, channels].
template <class Sequence>
struct SequenceImage;
/// Only sequences of this shape have an image.
template <std::size_t Length, std::size_t Channels>
struct SequenceImage<StaticShape<Length, Channels>> {
  /// The StaticShape of the image.
  using Type = StaticShape<1, Length, Channels>;
};

/// Square windows sliding over an image, for convolution and pooling. `Image` is the StaticShape [height, width,
/// channels]. If `IsSequence`, it is [1, length, channels], and windows have the height 1, without padding.
template <class Image, std::size_t Window, std::size_t Stride, class Padding, bool IsSequence = false>
struct WindowGeometry {
 private:
  using PaddingOfRows = std::conditional_t<IsSequence, Valid, Padding>;
  static constexpr std::size_t after(std::size_t extent, std::size_t size, std::size_t outputs, std::size_t before) {
    const std::size_t reached = (outputs - 1) * Stride + size;
    return reached > extent + before ? reached - extent - before : 0;
  }

 public:
  static constexpr bool is_sequence = IsSequence;                        ///< true: the image has one row, a sequence
  static constexpr std::size_t height = Image::template extent<0>;       ///< of the image
  static constexpr std::size_t width = Image::template extent<1>;        ///< of the image
  static constexpr std::size_t channels = Image::template extent<2>;     ///< of the image
  static constexpr std::size_t window = Window;                          ///< width of a window
  static constexpr std::size_t window_height = IsSequence ? 1 : Window;  ///< height of a window
  static constexpr std::size_t stride = Stride;                          ///< distance of windows
  /// Windows from top to bottom.
  static constexpr std::size_t output_height = PaddingOfRows::output(height, window_height, stride);
  static constexpr std::size_t output_width = Padding::output(width, window, stride);  ///< windows from left to right
  /// Zeros before the first row.
  static constexpr std::size_t pad_top = PaddingOfRows::before(height, window_height, stride);
  static constexpr std::size_t pad_left = Padding::before(width, window, stride);  ///< zeros before the first column

  /// Zeros after the last row and column.
  static constexpr std::size_t pad_bottom = after(height, window_height, output_height, pad_top);
  static constexpr std::size_t pad_right =
      after(width, window, output_width, pad_left);  ///< zeros after the last column

  /// True if each window covers an element of the image, which pooling requires.
  static constexpr bool windows_reach_image = pad_top < window_height && pad_left < window &&
                                              (output_height - 1) * stride < height + pad_top &&
                                              (output_width - 1) * stride < width + pad_left;

  /// Returns the sizes as text, for messages.
  [[nodiscard]] static std::string describe() {
    return concat("images ", height, " x ", width, " x ", channels, ", window ", window, ", stride ", stride);
  }
};

/// A convolution. Channels and filters are divided into consecutive `groups`; filters see their group's channels.
template <class Image, std::size_t Filters, std::size_t Window, std::size_t Stride, class Padding,
          class ActivationFunction, std::size_t Groups = 1, bool HasBias = true, bool IsSequence = false>
struct Conv2DGeometry : WindowGeometry<Image, Window, Stride, Padding, IsSequence> {
 private:
  using Windows = WindowGeometry<Image, Window, Stride, Padding, IsSequence>;

 public:
  /// The activation that the kernel applies.
  using Activation = ActivationFunction;
  /// An image.
  using Input = Image;
  /// The result of an image.
  using Output = StaticShape<Windows::output_height, Windows::output_width, Filters>;
  static constexpr bool has_bias = HasBias;        ///< false: no bias is added
  static constexpr std::size_t filters = Filters;  ///< channels of the output
  static constexpr std::size_t groups = Groups;    ///< 1: each filter sees all channels
  static constexpr std::size_t group_channels = Image::template extent<2> / Groups;  ///< channels that a filter sees
  static constexpr std::size_t group_filters = Filters / Groups;  ///< filters that see the same channels

  /// Returns the sizes as text, for messages.
  [[nodiscard]] static std::string describe() {
    const std::string all = concat(Windows::describe(), ", ", filters, " filters");
    return groups == 1 ? all : concat(all, " in ", groups, " groups");
  }
};

/// A transposed convolution: the gradient of the convolution `Swapped`, whose input has the size of this one's output.
template <class Image, std::size_t Filters, std::size_t Window, std::size_t Stride, class Padding,
          class ActivationFunction, bool HasBias = true>
struct Conv2DTransposeGeometry {
 private:
  static constexpr std::size_t more = std::is_same_v<Padding, Valid> && Window > Stride ? Window - Stride : 0;

 public:
  /// The activation that follows the bias.
  using Activation = ActivationFunction;
  /// An image.
  using Input = Image;
  /// The result of an image.
  using Output =
      StaticShape<Image::template extent<0> * Stride + more, Image::template extent<1> * Stride + more, Filters>;
  /// The convolution of which it is the gradient.
  using Swapped = Conv2DGeometry<Output, Image::template extent<2>, Window, Stride, Padding, Linear, 1, false>;
  static constexpr bool has_bias = HasBias;        ///< false: no bias is added
  static constexpr std::size_t filters = Filters;  ///< channels of the output
};

/// The mean of a window excludes padding, as in TensorFlow.
struct ExcludePadding {};
/// The mean of a window counts padding as zeros: PyTorch's `count_include_pad`.
struct CountPadding {};

/// The sum of a window, in place of its mean.
struct SumOfWindow {};

/// A pooling layer. `Counting` is ExcludePadding, CountPadding or SumOfWindow.
template <class Image, std::size_t Window, std::size_t Stride, class Padding = Valid, class Counting = ExcludePadding,
          bool IsSequence = false>
struct PoolGeometry : WindowGeometry<Image, Window, Stride, Padding, IsSequence> {
  /// True if the mean of a window counts padding as zeros.
  static constexpr bool counts_padding = std::is_same_v<Counting, CountPadding>;

  /// Returns the divisor in the mean of a window that covers `rows` x `columns` elements of the image.
  [[nodiscard]] static DIST_HD constexpr std::size_t counted(std::size_t rows, std::size_t columns) {
    if constexpr (std::is_same_v<Counting, SumOfWindow>) return 1;
    return counts_padding ? PoolGeometry::window_height * Window : rows * columns;
  }
};

/// Pooling over all pixels of an ImageGeometry: one window over a column of pixels.
template <class Image>
using GlobalPoolGeometry =
    PoolGeometry<StaticShape<Image::pixels, 1, Image::channels>, Image::pixels, Image::pixels, Same>;

}  // namespace dist::nn
