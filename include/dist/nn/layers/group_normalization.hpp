#pragma once

#include <cstddef>
#include <string_view>

#include <dist/core/tensor.hpp>
#include <dist/nn/backend.hpp>
#include <dist/nn/layer.hpp>
#include <dist/nn/layers/scale_and_shift.hpp>

namespace dist::nn::detail {

/// The Operation of layers that normalise parts of single rows. `Kernel` is the back end's operation.
template <class Backend, class Kernel, class Options, class T>
class GroupNormalizationOperation {
 public:
  void forward(typename Backend::State& state, ViewOn<Backend, const T> x,
               const ParameterViewsOn<Backend, const T, 2>& parameters, ViewOn<Backend, T> y) {
    kernel_.forward(state, x, parameters[0], parameters[1], Options::epsilon, y);
  }
  template <bool InputGradient>
  void backward(typename Backend::State& state, ViewOn<Backend, const T> x,
                const ParameterViewsOn<Backend, const T, 2>& parameters, ViewOn<Backend, const T>,
                ViewOn<Backend, T> dy, const ParameterViewsOn<Backend, T, 2>& gradients, ViewOn<Backend, T> dx) {
    kernel_.backward(state, x, parameters[0], dy, gradients[0], gradients[1],
                     InputGradient ? dx : ViewOn<Backend, T>{});
  }

 private:
  Kernel kernel_;
};

/// The numbers of channels, the last axis of `In`, in groups; with `PixelsTogether` statistics are over the other axes, too.
template <class In, std::size_t Groups, bool PixelsTogether>
struct GroupGeometry {
  static constexpr std::size_t channels = In::rank == 0 ? Groups : In::last_extent;
  static constexpr std::size_t groups = Groups;
  static constexpr std::size_t pixels = PixelsTogether ? In::elements / channels : 1;
};

}  // namespace dist::nn::detail

namespace dist::nn {

/// What Keras' GroupNormalization takes as an argument. To change it, derive and name it again.
struct GroupNormalizationOptions {
  static constexpr double epsilon = 1e-3;  ///< added to the variance, above 0
};

/// Normalises each group of channels, the last axis, over the axes before it: Wu, He: "Group normalization", ECCV 2018. As
/// many groups as channels is instance normalisation.
///
///   y = gamma * (x - mean) / sqrt(variance + epsilon) + beta
///
/// Rows do not influence each other, so training and inference are the same, with any number of replicas.
template <std::size_t Groups, class Options = GroupNormalizationOptions>
struct GroupNormalization {
  static_assert(Groups > 0, "nn::GroupNormalization needs at least one group");
  static_assert(Options::epsilon > 0, "nn::GroupNormalization needs an epsilon above 0, as a variance may be 0");

  template <class In>
  struct On : detail::ScaleAndShift<In::last_extent> {
    static_assert(In::rank > 0,
                  "nn::GroupNormalization normalises along the last axis, and its input has no axis: put nn::Reshape "
                  "before it");
    using Geometry = detail::GroupGeometry<In, Groups, true>;
    static_assert(
        Geometry::channels % Groups == 0,
        "nn::GroupNormalization divides the channels of its input into groups of equal size: give a number of "
        "groups that divides the number of channels");
    using Layer = GroupNormalization;
    using Output = In;
    static constexpr std::string_view name = "group_normalization";
    static constexpr bool is_view = false;

    template <class T>
    struct Asked {
      template <class Backend>
      using From = typename Backend::template GroupNormalization<Geometry, T>;
    };
    template <class Backend, class T>
    struct Operation : detail::GroupNormalizationOperation<Backend, detail::KernelFrom<Backend, Asked<T>>, Options, T> {
      static_assert(detail::computes<Backend, Asked<T>>,
                    "the back end of this network does not compute nn::GroupNormalization: use another back end, such "
                    "as nn::Reference or nn::OneDnn, or another layer");
    };
  };
};

/// What Keras' LayerNormalization takes as an argument. To change it, derive and name it again.
struct LayerNormalizationOptions {
  static constexpr double epsilon = 1e-3;  ///< added to the variance, above 0
};

/// Normalises each row, or each pixel of an image, over its channels, the last axis: Ba, Kiros, Hinton: "Layer
/// normalization", 2016.
///
///   y = gamma * (x - mean) / sqrt(variance + epsilon) + beta
///
/// Rows do not influence each other, so training and inference are the same, with any number of replicas.
template <class Options = LayerNormalizationOptions>
struct LayerNormalization {
  static_assert(Options::epsilon > 0, "nn::LayerNormalization needs an epsilon above 0, as a variance may be 0");

  template <class In>
  struct On : detail::ScaleAndShift<In::last_extent> {
    static_assert(In::rank > 0,
                  "nn::LayerNormalization normalises along the last axis, and its input has no axis: put nn::Reshape "
                  "before it");
    using Geometry = detail::GroupGeometry<In, 1, false>;
    using Layer = LayerNormalization;
    using Output = In;
    static constexpr std::string_view name = "layer_normalization";
    static constexpr bool is_view = false;

    template <class T>
    struct Asked {
      template <class Backend>
      using From = typename Backend::template GroupNormalization<Geometry, T>;
    };
    template <class Backend, class T>
    struct Operation : detail::GroupNormalizationOperation<Backend, detail::KernelFrom<Backend, Asked<T>>, Options, T> {
      static_assert(detail::computes<Backend, Asked<T>>,
                    "the back end of this network does not compute nn::LayerNormalization: use another back end, such "
                    "as nn::Reference or nn::OneDnn, or another layer");
    };
  };
};

}  // namespace dist::nn
