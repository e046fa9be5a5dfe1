#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>

#include <dist/core/static_shape.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/geometry.hpp>
#include <dist/nn/layer.hpp>

namespace dist::nn::detail {

/// The Operation of pooling layers, with the back end's `Kernel`.
template <class Backend, class Kernel, class T>
class PoolOperation {
 public:
  void forward(typename Backend::State& state, ViewOn<Backend, const T> x, const ParameterViewsOn<Backend, const T, 0>&,
               ViewOn<Backend, T> y) {
    kernel_.forward(state, x, y);
  }
  template <bool InputGradient>
  void backward(typename Backend::State& state, ViewOn<Backend, const T> x,
                const ParameterViewsOn<Backend, const T, 0>&, ViewOn<Backend, const T>, ViewOn<Backend, T> dy,
                const ParameterViewsOn<Backend, T, 0>&, ViewOn<Backend, T> dx) {
    if constexpr (InputGradient) kernel_.input_gradient(state, x, dy, dx);
  }

 private:
  Kernel kernel_;
};

/// MaxPool2D or AveragePool2D on rows of shape `In`. `Pooling` has the name and the kernel.
template <class LayerType, class Pooling, class In, std::size_t Window, std::size_t Stride, class Padding,
          class Counting = ExcludePadding, bool IsSequence = false>
struct BoundPool2D {
  static_assert(In::rank == 3,
                "nn::MaxPool2D and nn::AveragePool2D take rows [height, width, channels], but their input has a "
                "different number of axes: change nn::Input, or put nn::Reshape before them");
  // Prevents further errors after a failed assertion.
  using Image = std::conditional_t<In::rank == 3, In, StaticShape<Window, Window, 1>>;
  using Geometry = PoolGeometry<Image, Window, Stride, Padding, Counting, IsSequence>;
  static_assert(Geometry::output_height > 0 && Geometry::output_width > 0,
                "the window of a pooling layer, such as nn::MaxPool2D, is larger than its input: use a smaller window, "
                "or padding nn::Same");
  static_assert(Geometry::output_height == 0 || Geometry::output_width == 0 || Geometry::windows_reach_image,
                "a pooling layer, such as nn::MaxPool2D, has a window entirely outside its input: use less padding");
  using Layer = LayerType;
  using Output = StaticShape<Geometry::output_height, Geometry::output_width, Geometry::channels>;
  static constexpr std::string_view name = Pooling::name;
  static constexpr auto& parameters = no_parameters;
  static constexpr bool is_view = false;

  template <class T>
  struct Asked {
    template <class Backend>
    using From = typename Pooling::template Kernel<Backend, Geometry, T>;
  };
  template <class Backend, class T>
  using Operation = PoolOperation<Backend, KernelFrom<Backend, Asked<T>>, T>;
};
/// GlobalMaxPool2D or GlobalAveragePool2D on rows of shape `In`.
template <class LayerType, class Pooling, class In>
struct BoundGlobalPool2D {
  static_assert(In::rank == 3,
                "nn::GlobalMaxPool2D and nn::GlobalAveragePool2D take rows [height, width, channels], but their input "
                "has a different number of axes: change nn::Input, or put nn::Reshape before them");
  // Prevents further errors after a failed assertion.
  using Image = std::conditional_t<In::rank == 3, In, StaticShape<1, 1, 1>>;
  using Geometry = ImageGeometry<Image>;
  using Layer = LayerType;
  using Output = StaticShape<Geometry::channels>;
  static constexpr std::string_view name = Pooling::global_name;
  static constexpr auto& parameters = no_parameters;
  static constexpr bool is_view = false;

  template <class T>
  struct Asked {
    template <class Backend>
    using From = typename Pooling::template GlobalKernel<Backend, Geometry, T>;
  };
  template <class Backend, class T>
  using Operation = PoolOperation<Backend, KernelFrom<Backend, Asked<T>>, T>;
};

struct MaxPooling {
  static constexpr std::string_view name = "max_pooling2d", global_name = "global_max_pooling2d";
  static constexpr std::string_view sequence_name = "max_pooling1d", global_sequence_name = "global_max_pooling1d";
  template <class Backend, class Geometry, class T>
  using Kernel = typename Backend::template MaxPool2D<Geometry, T>;
  template <class Backend, class Image, class T>
  using GlobalKernel = typename Backend::template GlobalMaxPool2D<Image, T>;
};
struct AveragePooling {
  static constexpr std::string_view name = "average_pooling2d", global_name = "global_average_pooling2d";
  static constexpr std::string_view sequence_name = "average_pooling1d",
                                    global_sequence_name = "global_average_pooling1d";
  template <class Backend, class Geometry, class T>
  using Kernel = typename Backend::template AveragePool2D<Geometry, T>;
  template <class Backend, class Image, class T>
  using GlobalKernel = typename Backend::template GlobalAveragePool2D<Image, T>;
};

}  // namespace dist::nn::detail

namespace dist::nn {

/// The maximum of each square window, per channel, on rows [height, width, channels]. Padding Valid drops rows and
/// columns that do not fill a window. With Same or Pad, windows extend over the border, and padding is never the
/// maximum.
template <std::size_t Window, std::size_t Stride = Window, class Padding = Valid>
struct MaxPool2D {
  static_assert(Window > 0, "nn::MaxPool2D needs a window of at least one element");
  static_assert(Stride > 0, "nn::MaxPool2D needs a stride of at least one element");

  template <class In>
  struct On : detail::BoundPool2D<MaxPool2D, detail::MaxPooling, In, Window, Stride, Padding> {};
};

/// The mean of each square window, per channel, on rows [height, width, channels]. Padding Valid drops rows and
/// columns that do not fill a window. With Same or Pad, windows extend over the border. `Counting` is ExcludePadding or
/// CountPadding.
template <std::size_t Window, std::size_t Stride = Window, class Padding = Valid, class Counting = ExcludePadding>
struct AveragePool2D {
  static_assert(Window > 0, "nn::AveragePool2D needs a window of at least one element");
  static_assert(Stride > 0, "nn::AveragePool2D needs a stride of at least one element");
  static_assert(std::is_same_v<Counting, ExcludePadding> || std::is_same_v<Counting, CountPadding>,
                "the last argument of nn::AveragePool2D is nn::ExcludePadding or nn::CountPadding");

  template <class In>
  struct On : detail::BoundPool2D<AveragePool2D, detail::AveragePooling, In, Window, Stride, Padding, Counting> {};
};

/// The mean of each channel; rows [height, width, channels] become [channels].
struct GlobalAveragePool2D {
  template <class In>
  struct On : detail::BoundGlobalPool2D<GlobalAveragePool2D, detail::AveragePooling, In> {};
};

/// The maximum of each channel; rows [height, width, channels] become [channels]. The first maximum in row-major
/// order receives the gradient.
struct GlobalMaxPool2D {
  template <class In>
  struct On : detail::BoundGlobalPool2D<GlobalMaxPool2D, detail::MaxPooling, In> {};
};

}  // namespace dist::nn
