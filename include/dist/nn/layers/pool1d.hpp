#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>

#include <dist/core/static_shape.hpp>
#include <dist/nn/geometry.hpp>
#include <dist/nn/layers/pool2d.hpp>

namespace dist::nn::detail {

/// The image of rows of shape `In`; another one, to prevent further errors, if they are not sequences.
template <class In>
using ImageOfSequence = typename SequenceImage<std::conditional_t<In::rank == 2, In, StaticShape<1, 1>>>::Type;

/// MaxPool1D or AveragePool1D on rows of shape `In`.
template <class LayerType, class Pooling, class In, std::size_t Window, std::size_t Stride, class Padding,
          class Counting = ExcludePadding>
struct BoundPool1D
    : BoundPool2D<LayerType, Pooling, std::conditional_t<In::rank == 2, ImageOfSequence<In>, StaticShape<1, Window, 1>>,
                  Window, Stride, Padding, Counting, true> {
  static_assert(In::rank == 2,
                "nn::MaxPool1D and nn::AveragePool1D take rows [length, channels], but their input has a different "
                "number of axes: change nn::Input, or put nn::Reshape before them");
  using Output = StaticShape<BoundPool1D::Geometry::output_width, BoundPool1D::Geometry::channels>;
  static constexpr std::string_view name = Pooling::sequence_name;
};
/// GlobalMaxPool1D or GlobalAveragePool1D on rows of shape `In`.
template <class LayerType, class Pooling, class In>
struct BoundGlobalPool1D : BoundGlobalPool2D<LayerType, Pooling, ImageOfSequence<In>> {
  static_assert(In::rank == 2,
                "nn::GlobalMaxPool1D and nn::GlobalAveragePool1D take rows [length, channels], but their input has a "
                "different number of axes: change nn::Input, or put nn::Reshape before them");
  static constexpr std::string_view name = Pooling::global_sequence_name;
};

}  // namespace dist::nn::detail

namespace dist::nn {

/// The maximum of each window, per channel, on rows [length, channels]; see nn::MaxPool2D.
template <std::size_t Window, std::size_t Stride = Window, class Padding = Valid>
struct MaxPool1D {
  static_assert(Window > 0, "nn::MaxPool1D needs a window of at least one element");
  static_assert(Stride > 0, "nn::MaxPool1D needs a stride of at least one element");

  /// The bound layer.
  template <class In>
  struct On : detail::BoundPool1D<MaxPool1D, detail::MaxPooling, In, Window, Stride, Padding> {};
};

/// The mean of each window, per channel, on rows [length, channels]; see nn::AveragePool2D.
template <std::size_t Window, std::size_t Stride = Window, class Padding = Valid, class Counting = ExcludePadding>
struct AveragePool1D {
  static_assert(Window > 0, "nn::AveragePool1D needs a window of at least one element");
  static_assert(Stride > 0, "nn::AveragePool1D needs a stride of at least one element");
  static_assert(std::is_same_v<Counting, ExcludePadding> || std::is_same_v<Counting, CountPadding>,
                "the last argument of nn::AveragePool1D is nn::ExcludePadding or nn::CountPadding");

  /// The bound layer.
  template <class In>
  struct On : detail::BoundPool1D<AveragePool1D, detail::AveragePooling, In, Window, Stride, Padding, Counting> {};
};

/// The mean of each channel; rows [length, channels] become [channels].
struct GlobalAveragePool1D {
  /// The bound layer.
  template <class In>
  struct On : detail::BoundGlobalPool1D<GlobalAveragePool1D, detail::AveragePooling, In> {};
};

/// The maximum of each channel; rows [length, channels] become [channels]. The first maximum receives the gradient.
struct GlobalMaxPool1D {
  /// The bound layer.
  template <class In>
  struct On : detail::BoundGlobalPool1D<GlobalMaxPool1D, detail::MaxPooling, In> {};
};

}  // namespace dist::nn
